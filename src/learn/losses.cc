#include "learn/losses.h"

#include <cmath>
#include <numeric>

namespace hone {
namespace {

Value mean_of_all(Value x) {
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? x : reduce_mean(x, axes);
}

}  // namespace

Value mean_squared_error(Value y, Value target) {
  const Value difference = y - target;
  return mean_of_all(difference * difference);
}

Value cross_entropy(Value logits, Value labels) {
  const Value each = log_softmax(logits);
  const int last = logits.rank() - 1;
  const Value classes = iota(logits.builder(), DType::i64, logits.dims(), last);
  const Value highest = cast(size_value(logits.builder(), logits.dim(last)), DType::i64) - 1;
  const Value label = minimum(maximum(cast(labels, DType::i64), 0), highest);
  const Value chosen = compare("eq", classes, unsqueeze(label, last));
  // As a sum and not as a gather, whose derivative scatters.
  return -mean_of_all(
      reduce_sum(select(chosen, each, logits.builder().scalar(each.dtype(), 0)), {last}));
}

ValueId logits_of(const Graph& graph, ValueId output) {
  const NodeId n = graph.producer(output);
  if (graph.opcode(n) != Opcode::softmax) return output;
  const int64_t axis = graph.op(n).integer("axis"), rank = graph.type(output).rank();
  return axis == -1 || axis == rank - 1 ? graph.operands(n)[0] : output;
}

Value log_squared_error(Value y, Value target) { return mean_squared_error(log(y), log(target)); }

// ---- Ranks --------------------------------------------------------------------------------------

namespace {

// [..., n] -> [..., n, 1] and [..., 1, n]: the first and the second item of each pair.
Value first_of_pair(Value x) { return unsqueeze(x, x.rank()); }
Value second_of_pair(Value x) { return unsqueeze(x, x.rank() - 1); }

Value zero_like(Value x) { return x.builder().scalar(x.dtype(), 0); }
Value as_number(Value truth, Value like) { return cast(truth, like.dtype()); }

// The mean over the pairs that count.
Value mean_where(Value each, Value counts) {
  Ints axes(static_cast<size_t>(each.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const Value count = reduce_sum(as_number(counts, each), axes);
  return reduce_sum(select(counts, each, zero_like(each)), axes) / maximum(count, 1);
}

// Over pairs whose first item has the higher target.
Value mean_of_pairs(Value each, Value targets) {
  return mean_where(each, compare("gt", first_of_pair(targets), second_of_pair(targets)));
}

Value score_differences(Value scores) { return first_of_pair(scores) - second_of_pair(scores); }

// Per pair: whether the second item comes at or behind the first one when x falls. The first of
// equals in the list comes first.
Value is_at_or_behind(Value x) {
  Builder& b = x.builder();
  const int last = x.rank() - 1;
  const Value place = iota(b, DType::i64, x.dims(), last);
  const Value mine = first_of_pair(x), other = second_of_pair(x);
  const Value later = compare("ge", second_of_pair(place), first_of_pair(place));
  return binary(Opcode::or_, compare("lt", other, mine),
                binary(Opcode::and_, compare("eq", other, mine), later));
}

// 1 / log2(2 + rank) of each item, when x falls.
Value discounts(Value x) {
  const Value before =
      binary(Opcode::sub, x.builder().scalar(x.dtype(), 1), as_number(is_at_or_behind(x), x));
  const Value rank = reduce_sum(before, {x.rank()});
  return std::log(2.0) / log(rank + 2);
}

}  // namespace

Value pairwise_hinge(Value scores, Value targets, double margin) {
  return mean_of_pairs(relu(margin - score_differences(scores)), targets);
}

Value pairwise_logistic(Value scores, Value targets) {
  const Value each = scores.builder().op(Opcode::softplus, {-score_differences(scores)});
  return mean_of_pairs(each, targets);
}

namespace {

// For each pair: by how much farther than both noises the first one's target is above the other's.
Value beyond_noise(Value targets, Value noise) {
  const Value variance = noise * noise;
  const Value least = sqrt(first_of_pair(variance) + second_of_pair(variance));
  return first_of_pair(targets) - second_of_pair(targets) - least;
}

}  // namespace

Value noisy_pairwise_logistic(Value scores, Value targets, Value noise) {
  const Value each = scores.builder().op(Opcode::softplus, {-score_differences(scores)});
  return mean_where(each, compare("gt", beyond_noise(targets, noise), 0));
}

Value weighted_pairwise_logistic(Value scores, Value targets, Value noise) {
  const Value each = scores.builder().op(Opcode::softplus, {-score_differences(scores)});
  const Value weight = relu(beyond_noise(targets, noise));
  Ints axes(static_cast<size_t>(each.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return reduce_sum(each * weight, axes) / maximum(reduce_sum(weight, axes), 1e-30);
}

Value lambda_rank(Value scores, Value targets) {
  const Value gain = exp(targets * std::log(2.0)) - 1;
  const Value now = discounts(scores);
  const Value ideal = reduce_sum(gain * discounts(targets), {targets.rank() - 1}, true);
  const Value swapped =
      (first_of_pair(gain) - second_of_pair(gain)) * (first_of_pair(now) - second_of_pair(now));
  const Value change = unary(Opcode::abs, swapped) / maximum(first_of_pair(ideal), 1e-30);
  const Value each = scores.builder().op(Opcode::softplus, {-score_differences(scores)});
  return mean_of_pairs(stop_gradient(change) * each, targets);
}

Value list_mle(Value scores, Value targets) {
  const Value remains = is_at_or_behind(targets);
  const Value other = broadcast_to(second_of_pair(scores), remains.dims());
  const Value lowest = scores.builder().scalar(scores.dtype(), -highest_finite(scores.dtype()));
  const int last = scores.rank();
  const Value highest = stop_gradient(reduce_max(select(remains, other, lowest), {last}));
  // Items that are gone count 0 before exp(), too: its slope there must be finite.
  const Value shifted = select(remains, other - first_of_pair(highest), zero_like(scores));
  const Value sum = reduce_sum(select(remains, exp(shifted), zero_like(scores)), {last});
  return mean_of_all(reduce_sum(highest + log(sum) - scores, {last - 1}));
}

// ---- Policies -----------------------------------------------------------------------------------

Value clipped_policy_loss(Value log_probability, Value old_log_probability, Value advantage,
                          double clip) {
  const Value ratio = exp(log_probability - old_log_probability);
  const Value clipped = minimum(maximum(ratio, 1 - clip), 1 + clip);
  return -mean_of_all(minimum(ratio * advantage, clipped * advantage));
}

}  // namespace hone
