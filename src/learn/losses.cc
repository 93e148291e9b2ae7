#include "learn/losses.h"

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

}  // namespace hone
