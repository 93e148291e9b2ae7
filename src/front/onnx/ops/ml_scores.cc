#include "front/onnx/ops/ml_scores.h"

#include <cmath>
#include <numbers>

namespace hone::onnx_io {
namespace {

// Softmax in which scores next to 0 count as none: they get no share of the sum.
Value softmax_zero(Value x) {
  Value most = reduce_max(x, {-1}, true);
  Value is_none = compare("le", unary(Opcode::abs, x), 1e-7);
  Value share = exp(x - most), zero = x.builder().scalar(x.dtype(), 0);
  Value sum = reduce_sum(select(is_none, zero, share), {-1}, true);
  return select(is_none, x * exp(-most), share) / sum;
}

// The quantile of the normal distribution, by the formula that the standard's reference uses
// (Winitzki's approximation of the inverse error function).
Value probit(Value x) {
  constexpr double kA = 0.147;
  Value y = x * 2.0 - 1.0;
  Value logarithm = log((1.0 - y) * (1.0 + y));
  Value v = logarithm * 0.5 + 2.0 / (std::numbers::pi * kA);
  Value size = sqrt(sqrt(v * v - logarithm * (1.0 / kA)) - v);
  return select(compare("lt", y, 0), -size, size) * std::numbers::sqrt2;
}

}  // namespace

ScoreTransform score_transform(Node& n) {
  constexpr std::string_view kWords[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string word = n.word("post_transform", "NONE");
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (kWords[i] == word) return static_cast<ScoreTransform>(i);
  n.bad("post_transform is '{}'", word);
}

Value transformed(Value scores, ScoreTransform transform) {
  if (transform == ScoreTransform::probit) return probit(scores);
  if (scores.dim(-1).is(1)) return scores;
  switch (transform) {
    case ScoreTransform::softmax: return softmax(scores);
    case ScoreTransform::logistic: return logistic(scores);
    case ScoreTransform::softmax_zero: return softmax_zero(scores);
    default: return scores;
  }
}

Ints class_labels(Node& n, std::string_view name) {
  Ints labels = n.strings("classlabels_strings");
  if (labels.empty())
    labels = n.ints(name);
  else if (!n.ints(name).empty())
    n.bad("its labels are given twice, as strings and as {}", name);
  if (labels.size() < 2) n.unsupported("it has {} labels, at least 2 are needed", labels.size());
  return labels;
}

void out_classes(Node& n, const Ints& labels, Value chosen, Value scores) {
  const Type type = Type::get(DType::i64, {static_cast<int64_t>(labels.size())});
  n.out(0, take(n.builder().constant(Tensor::from_integers(type, labels)), chosen));
  n.out(1, cast(scores, DType::f32));
}

Value with_other_class(Node& n, Value score, OtherClass other, ScoreTransform transform) {
  if (transform == ScoreTransform::probit)
    n.unsupported("post_transform PROBIT of two classes of which one has a score");
  if (transform == ScoreTransform::logistic) return concat({logistic(-score), logistic(score)}, 1);
  return concat({other == OtherClass::negative ? -score : 1.0 - score, score}, 1);
}

Value real_rows(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1, 2);
  if (!is_real(x.dtype()) && !is_integer(x.dtype()))
    n.bad("the operand is {}, must have numbers", x.type().to_string());
  if (x.rank() == 1) x = unsqueeze(x, 0);
  return x.dtype() == DType::f64 ? x : cast(x, DType::f32);
}

}  // namespace hone::onnx_io
