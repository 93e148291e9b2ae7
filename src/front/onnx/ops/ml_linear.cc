#include "front/onnx/ops/ml_scores.h"
#include "front/onnx/registry.h"
#include "tensor/counting.h"

// Linear models of ai.onnx.ml, and what prepares their features.

namespace hone::onnx_io {
namespace {

Value vector_of(Value like, const std::vector<double>& numbers) {
  const Type type = Type::get(like.dtype(), {static_cast<int64_t>(numbers.size())});
  return like.builder().constant(Tensor::from_reals(type, numbers));
}

// [rows, targets]: coefficients lie target by target.
Value linear_scores(Node& n, Value x, int64_t targets) {
  const std::vector<double> weights = n.reals("coefficients");
  const std::vector<double> intercepts = n.reals("intercepts");
  const auto count = static_cast<int64_t>(weights.size());
  if (targets < 1 || targets > count || count % targets != 0)
    n.bad("{} coefficients for {} targets", count, targets);
  const int64_t features = count / targets;
  if (x.dim(1).is_static() && !x.dim(1).is(features))
    n.bad("{} coefficients per target for {} features", features, x.dim(1).value());
  Value scores = matmul(x, transpose(reshape(vector_of(x, weights), {targets, features}), {1, 0}));
  if (intercepts.empty()) return scores;
  if (std::cmp_not_equal(intercepts.size(), targets))
    n.bad("{} intercepts for {} targets", intercepts.size(), targets);
  return scores + vector_of(x, intercepts);
}

// One number for all features, or one per feature.
Value per_feature(Node& n, Value x, std::string_view name) {
  const std::vector<double> numbers = n.reals(name);
  const Dim features = x.dim(-1);
  const auto count = static_cast<int64_t>(numbers.size());
  if (count != 1 && features.is_static() && !features.is(count))
    n.bad("{} has {} numbers for {} features", name, count, features.value());
  return vector_of(x, numbers);
}

Value as_floats(Node& n, Value x) {
  if (!is_real(x.dtype()) && !is_integer(x.dtype()))
    n.bad("the operand is {}, must have numbers", x.type().to_string());
  return x.dtype() == DType::f64 ? x : cast(x, DType::f32);
}

}  // namespace

void map_linear_regressor(Node& n) {
  Value scores = linear_scores(n, real_rows(n), n.integer("targets", 1));
  n.out(cast(transformed(scores, score_transform(n)), DType::f32));
}

// One row of coefficients for two labels is the score of the second one.
void map_linear_classifier(Node& n) {
  n.ignore("multi_class");
  const Ints labels = class_labels(n, "classlabels_ints");
  const ScoreTransform transform = score_transform(n);
  Value x = real_rows(n);
  const size_t intercepts = n.reals("intercepts").size();
  const bool is_one_row =
      labels.size() == 2 &&
      (intercepts == 1 || x.dim(1).is(static_cast<int64_t>(n.reals("coefficients").size())));
  if (!is_one_row) {
    Value scores = linear_scores(n, x, static_cast<int64_t>(labels.size()));
    return out_classes(n, labels, argmax(scores, 1), transformed(scores, transform));
  }
  Value score = linear_scores(n, x, 1);
  Value wins = cast(compare("gt", squeeze(score, 1), 0), DType::i64);
  out_classes(n, labels, wins, with_other_class(n, score, OtherClass::complement, transform));
}

// Rows over their largest number, the sum of their sizes or their length; a divisor of 0 keeps
// them.
void map_normalizer(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1, 2);
  x = as_floats(n, x);
  const std::string norm = n.word("norm", "MAX");
  Value divisor;
  if (norm == "MAX") divisor = reduce_max(x, {-1}, true);
  if (norm == "L1") divisor = reduce_sum(unary(Opcode::abs, x), {-1}, true);
  if (norm == "L2") divisor = sqrt(reduce_sum(x * x, {-1}, true));
  if (!divisor) n.bad("norm is '{}'", norm);
  n.out(cast(select(compare("eq", divisor, 0), x, x / divisor), DType::f32));
}

void map_scaler(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1);
  x = as_floats(n, x);
  if (n.has_attribute("offset")) x = x - per_feature(n, x, "offset");
  if (n.has_attribute("scale")) x = x * per_feature(n, x, "scale");
  n.out(cast(x, DType::f32));
}

// Integers are compared as doubles: the threshold may lie between two of them.
void map_binarizer(Node& n) {
  Value x = n.in();
  if (!is_real(x.dtype()) && !is_integer(x.dtype()))
    n.bad("the operand is {}, must have numbers", x.type().to_string());
  Value number = is_real(x.dtype()) ? x : cast(x, DType::f64);
  n.out(cast(compare("gt", number, n.real("threshold", 0)), x.dtype()));
}

}  // namespace hone::onnx_io
