#include <algorithm>

#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/ml_forest.h"
#include "front/onnx/ops/ml_scores.h"
#include "front/onnx/registry.h"

// Support vector machines of ai.onnx.ml, as ONNX Runtime and libsvm have them.

namespace hone::onnx_io {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 25;  // in a table of vectors by pairs of classes
constexpr int64_t kMostClasses = 256;               // with probabilities

Value constant_of(Value like, const std::vector<double>& numbers, const Dims& dims) {
  return like.builder().constant(Tensor::from_reals(Type::get(like.dtype(), dims), numbers));
}

std::vector<double> wanted_reals(Node& n, std::string_view name, int64_t least) {
  const std::vector<double> numbers = n.reals(name);
  if (std::cmp_less(numbers.size(), least))
    n.bad("{} has {} numbers, {} are needed", name, numbers.size(), least);
  return numbers;
}

// ---- Kernels ------------------------------------------------------------------------------------

// How alike a row and a vector are.
struct Likeness {
  std::string form;
  double gamma = 0, offset = 0, degree = 0;

  // The kernel of all rows x and `count` vectors, which lie one after the other: [rows, vectors].
  Value operator()(Node& n, Value x, const std::vector<double>& vectors, int64_t count) const {
    const auto numbers = static_cast<int64_t>(vectors.size());
    if (count < 1 || numbers % count != 0 || numbers == 0)
      n.bad("{} numbers for {} vectors", numbers, count);
    const int64_t features = numbers / count;
    if (x.dim(1).is_static() && !x.dim(1).is(features))
      n.bad("vectors of {} numbers for {} features", features, x.dim(1).value());
    Value table = constant_of(x, vectors, {count, features});
    if (form == "RBF") {
      Value apart = unsqueeze(x, 1) - unsqueeze(table, 0);
      return exp(reduce_sum(apart * apart, {2}) * -gamma);
    }
    Value product = matmul(x, transpose(table, {1, 0}));
    if (form == "LINEAR") return product;
    product = product * gamma + offset;
    return form == "POLY" ? power(product, degree) : tanh(product);
  }
};

Likeness likeness_of(Node& n) {
  Likeness likeness = {.form = n.word("kernel_type", "LINEAR")};
  constexpr std::string_view kForms[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  if (std::ranges::find(kForms, likeness.form) == std::end(kForms))
    n.bad("kernel_type is '{}'", likeness.form);
  const std::vector<double> numbers = n.reals("kernel_params");
  if (numbers.empty()) return likeness;
  if (numbers.size() != 3) n.bad("kernel_params has {} numbers, 3 are needed", numbers.size());
  likeness.gamma = numbers[0], likeness.offset = numbers[1], likeness.degree = numbers[2];
  return likeness;
}

// ---- Pairs of classes ---------------------------------------------------------------------------

// Every two classes have a machine of their own, in the order 01, 02, .., 12, ..
struct Pairs {
  int64_t classes = 0;

  int64_t count() const { return classes * (classes - 1) / 2; }
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t pair = 0;
    for (int64_t i = 0; i < classes; ++i)
      for (int64_t j = i + 1; j < classes; ++j) visit(pair++, i, j);
  }
};

// The number that each vector adds to the score of each pair: [vectors, pairs]. The coefficients of
// a class's vectors against each other class lie in rows, without one for the class itself.
std::vector<double> pair_weights(Node& n, Pairs pairs, const Ints& sizes, int64_t vectors) {
  const std::vector<double> given = wanted_reals(n, "coefficients", (pairs.classes - 1) * vectors);
  if (vectors * pairs.count() > kMostWeights)
    n.over_limit("{} vectors for {} pairs of classes: at most {} products are read", vectors,
                 pairs.count(), kMostWeights);
  Ints first;
  int64_t next = 0;
  for (int64_t size : sizes) first.push_back(std::exchange(next, next + size));
  std::vector<double> weights(static_cast<size_t>(vectors * pairs.count()));
  pairs.each([&](int64_t pair, int64_t i, int64_t j) {
    const auto add = [&](int64_t of, int64_t row) {
      const int64_t begin = first[static_cast<size_t>(of)];
      for (int64_t v = begin; v < begin + sizes[static_cast<size_t>(of)]; ++v)
        weights[static_cast<size_t>(v * pairs.count() + pair)] =
            given[static_cast<size_t>(row * vectors + v)];
    };
    add(i, j - 1);
    add(j, i);
  });
  return weights;
}

// The class that wins most pairs, the first of equals: a score above 0 is a vote for the first.
Value most_votes(Value scores, Pairs pairs) {
  std::vector<double> gain(static_cast<size_t>(pairs.count() * pairs.classes));
  std::vector<double> start(static_cast<size_t>(pairs.classes));
  pairs.each([&](int64_t pair, int64_t i, int64_t j) {
    gain[static_cast<size_t>(pair * pairs.classes + i)] = 1;
    gain[static_cast<size_t>(pair * pairs.classes + j)] = -1;
    start[static_cast<size_t>(j)] += 1;
  });
  Value wins = cast(compare("gt", scores, 0), scores.dtype());
  Value votes = matmul(wins, constant_of(scores, gain, {pairs.count(), pairs.classes}));
  return argmax(votes + constant_of(scores, start, {pairs.classes}), 1);
}

// ---- Probabilities ------------------------------------------------------------------------------

// [rows, classes, classes]: how probable class i is where it is i or j; 0 where i is j.
Value pair_probabilities(Node& n, Value scores, Pairs pairs) {
  const std::vector<double> a = wanted_reals(n, "prob_a", pairs.count());
  const std::vector<double> b = wanted_reals(n, "prob_b", pairs.count());
  if (a.size() != b.size()) n.bad("prob_a has {} numbers, prob_b {}", a.size(), b.size());
  const auto kept = static_cast<size_t>(pairs.count());
  Value slopes =
      constant_of(scores, {a.begin(), a.begin() + static_cast<long>(kept)}, {pairs.count()});
  Value offsets =
      constant_of(scores, {b.begin(), b.begin() + static_cast<long>(kept)}, {pairs.count()});
  constexpr double kLeast = 1e-7;
  Value first = 1.0 - logistic(scores * slopes + offsets);
  first = minimum(maximum(first, kLeast), 1 - kLeast);
  // Places in: first, 1 - first, 0.
  Ints places(static_cast<size_t>(pairs.classes * pairs.classes), 2 * pairs.count());
  pairs.each([&](int64_t pair, int64_t i, int64_t j) {
    places[static_cast<size_t>(i * pairs.classes + j)] = pair;
    places[static_cast<size_t>(j * pairs.classes + i)] = pairs.count() + pair;
  });
  Value all = pad(concat({first, 1.0 - first}, 1), {0, 0}, {0, 1});
  Value taken = take(all, integers(n.builder(), places), 1);
  return reshape(taken, {scores.dim(0), pairs.classes, pairs.classes});
}

// One round of Gauss and Seidel for the least p Q p with the p of a row summing to 1.
Value next_probabilities(Value p, Value q, Value qp, Value pqp) {
  const int64_t classes = p.dim(1).value();
  for (int64_t t = 0; t < classes; ++t) {
    Value row = squeeze(slice(q, 1, t, t + 1), 1);
    Value own = slice(row, 1, t, t + 1), own_qp = slice(qp, 1, t, t + 1);
    Value step = (pqp - own_qp) / own, scale = 1.0 + step;
    Value column = iota(p.builder(), DType::i64, {1, classes}, 1);
    p = select(compare("eq", column, static_cast<double>(t)), p + step, p) / scale;
    pqp = (pqp + step * (step * own + own_qp * 2.0)) / scale / scale;
    qp = (qp + step * row) / scale;
  }
  return p;
}

// Probabilities of classes from those of pairs, as libsvm couples them: it stops by itself, row by
// row, so the result depends on when.
Value coupled(Value r, int64_t classes) {
  constexpr double kMostRounds = 100;
  Builder& b = r.builder();
  const Dim rows = r.dim(0);
  Value other = transpose(r, {0, 2, 1});
  Value places = iota(b, DType::i64, {classes, classes}, 0);
  Value is_own = compare("eq", places, iota(b, DType::i64, {classes, classes}, 1));
  Value own = unsqueeze(reduce_sum(other * other, {2}), 2);
  Value q = select(is_own, own, -(r * other));
  Value p = b.full(r.dtype(), {rows, classes}, 1.0 / static_cast<double>(classes));
  Value open = b.full(DType::boolean, {rows}, 1);
  Value round = b.scalar(DType::i64, 0);
  const double enough = 0.005 / static_cast<double>(classes);
  const auto goes_on = [](Builder& inner, std::span<const Value> in) {
    Value any = compare("gt", reduce_sum(cast(in[1], DType::i64), {0}), 0);
    (void)inner;
    return std::vector{binary(Opcode::and_, any, compare("lt", in[3], kMostRounds))};
  };
  const auto body = [&](Builder& inner, std::span<const Value> in) {
    (void)inner;
    Value now = in[0], table = in[2];
    Value qp = reduce_sum(table * unsqueeze(now, 1), {2});
    Value pqp = reduce_sum(now * qp, {1}, true);
    Value error = reduce_max(unary(Opcode::abs, qp - pqp), {1});
    Value still = binary(Opcode::and_, in[1], unary(Opcode::not_, compare("lt", error, enough)));
    Value next = next_probabilities(now, table, qp, pqp);
    return std::vector{select(unsqueeze(still, 1), next, now), still, table, in[3] + 1.0};
  };
  return while_loop(std::vector{p, open, q, round}, goes_on, body)[0];
}

// ---- Classifiers --------------------------------------------------------------------------------

// Without vectors: scores by coefficients alone.
void out_linear(Node& n, const Ints& labels, Value x, ScoreTransform transform) {
  const std::vector<double> coefficients = n.reals("coefficients");
  const auto classes = static_cast<int64_t>(labels.size());
  const double rho = wanted_reals(n, "rho", 1)[0];
  Value scores = Likeness{.form = "LINEAR"}(n, x, coefficients, classes) + rho;
  Value chosen = argmax(scores, 1);
  if (classes == 2 && n.reals("prob_a").empty()) {
    // ONNX Runtime: the second label wins wherever a score is large enough.
    const bool is_share = std::ranges::all_of(coefficients, [](double c) { return c >= 0; });
    Value most = reduce_max(scores, {1});
    Value wins = is_share ? compare("ge", most, 0.5) : compare("gt", most, 0);
    chosen = select(wins, n.builder().scalar(DType::i64, 1), chosen);
  }
  out_classes(n, labels, chosen, transformed(scores, transform));
}

}  // namespace

void map_svm_classifier(Node& n) {
  const Ints labels = class_labels(n, "classlabels_ints");
  const ScoreTransform transform = score_transform(n);
  const Likeness likeness = likeness_of(n);
  const Ints sizes = n.ints("vectors_per_class");
  const std::vector<double> table = n.reals("support_vectors");
  Value x = real_rows(n);
  int64_t vectors = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > kMostWeights) n.bad("vectors_per_class has the number {}", size);
    vectors += size;
  }
  const bool has_probabilities = !n.reals("prob_a").empty() || !n.reals("prob_b").empty();
  if (vectors == 0) return out_linear(n, labels, x, transform);
  const Pairs pairs = {static_cast<int64_t>(labels.size())};
  if (sizes.size() != labels.size())
    n.bad("vectors_per_class has {} numbers for {} labels", sizes.size(), labels.size());
  std::vector<double> rho = wanted_reals(n, "rho", pairs.count());
  rho.resize(static_cast<size_t>(pairs.count()));
  Value weights = constant_of(x, pair_weights(n, pairs, sizes, vectors), {vectors, pairs.count()});
  Value scores = matmul(likeness(n, x, table, vectors), weights);
  scores = scores + constant_of(x, rho, {pairs.count()});
  Value chosen = most_votes(scores, pairs);
  if (has_probabilities) {
    if (pairs.classes > kMostClasses)
      n.over_limit("probabilities of {} classes, at most {} are coupled", pairs.classes,
                   kMostClasses);
    Value shares = coupled(pair_probabilities(n, scores, pairs), pairs.classes);
    return out_classes(n, labels, chosen, transformed(shares, transform));
  }
  if (pairs.classes > 2) return out_classes(n, labels, chosen, transformed(scores, transform));
  const OtherClass other =
      transform == ScoreTransform::none ? OtherClass::negative : OtherClass::complement;
  out_classes(n, labels, chosen, with_other_class(n, scores, other, transform));
}

void map_svm_regressor(Node& n) {
  if (n.word("post_transform", "NONE") != "NONE")
    n.unsupported("post_transform '{}' of a regressor", n.word("post_transform", ""));
  const Likeness likeness = likeness_of(n);
  const int64_t vectors = n.integer("n_supports", 0);
  const std::vector<double> coefficients = n.reals("coefficients");
  const std::vector<double> table = n.reals("support_vectors");
  const double rho = wanted_reals(n, "rho", 1)[0];
  Value x = real_rows(n);
  Value score;
  if (vectors < 0) n.bad("n_supports is {}", vectors);
  if (vectors == 0) {
    score = Likeness{.form = "LINEAR"}(n, x, coefficients, 1);
  } else {
    if (std::cmp_not_equal(coefficients.size(), vectors))
      n.bad("{} coefficients for {} vectors", coefficients.size(), vectors);
    Value likenesses = likeness(n, x, table, vectors);
    score = matmul(likenesses, constant_of(x, coefficients, {vectors, 1}));
  }
  score = score + rho;
  if (n.flag("one_class"))
    score = select(compare("gt", score, 0), n.builder().full(score.dtype(), score.dims(), 1),
                   n.builder().full(score.dtype(), score.dims(), -1));
  n.out(cast(score, DType::f32));
}

}  // namespace hone::onnx_io
