#include <algorithm>

#include "ir/derivatives/rules.h"
#include "ir/ops/checks.h"

// Reductions and running reductions. Sums are linear; a maximum follows its largest element, or the
// mean of those that are equally large.

namespace hone {

namespace {

// A reduced value, or a cotangent of one, under the dims of the operand.
Value spread_over(Value reduced, const Ints& axes, Type operand) {
  Ints map;
  for (int i = 0; i < operand.rank(); ++i)
    if (!contains(axes, i)) map.push_back(i);
  return broadcast(reduced, dims_of(operand), map);
}

std::vector<Value> extreme_tangent(const TangentCall& call) {
  Builder& b = call.builder;
  const Ints& axes = call.op.ints("axes");
  Value x = call.operand(0);
  Value is_extreme = compare("eq", x, spread_over(call.result(), axes, x.type()));
  Value count = reduce_sum(cast(is_extreme, x.dtype()), axes);
  return {reduce_sum(select(is_extreme, call.tangent(0), zeros_of(b, x.type())), axes) / count};
}

// The tangent of each factor times the product of the factors before it and of those after it.
// It divides by no factor, so factors of 0 are like any others.
std::vector<Value> product_tangent(const TangentCall& call) {
  const Ints& axes = call.op.ints("axes");
  Value x = call.operand(0), t = call.tangent(0);
  Ints permutation;
  Dim count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (!contains(axes, i)) permutation.push_back(i);
  Dims dims;
  for (int64_t i : permutation) dims.push_back(x.dim(static_cast<int>(i)));
  for (int i = 0; i < x.rank(); ++i) {
    if (!contains(axes, i)) continue;
    permutation.push_back(i);
    count *= x.dim(i);
  }
  const int last = static_cast<int>(dims.size());
  dims.push_back(count);
  auto flat = [&](Value v) { return reshape(transpose(v, permutation), dims); };
  Value before = cumulative("product", flat(x), last, true, false);
  Value behind = cumulative("product", flat(x), last, true, true);
  return {reduce_sum(flat(t) * (before * behind), {last})};
}

std::vector<Value> reduce_tangent(const TangentCall& call) {
  const std::string& kind = call.op.word("kind");
  if (kind == "sum") return linear_tangents(call);
  return kind == "product" ? product_tangent(call) : extreme_tangent(call);
}

std::vector<Value> reduce_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  return {spread_over(call.cotangent(), call.op.ints("axes"), call.type(0))};
}

// ---- cumulative ---------------------------------------------------------------------------------

std::vector<Value> cumulative_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  return {cumulative("sum", call.cotangent(), static_cast<int>(call.op.integer("axis")),
                     call.op.flag("exclusive"), !call.op.flag("reverse"))};
}

// Moves elements `by` places along the axis, away from where the running starts.
Value shifted(Value x, int axis, int64_t by, bool is_reverse, double fill) {
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  low[static_cast<size_t>(axis)] = is_reverse ? -by : by;
  high[static_cast<size_t>(axis)] = is_reverse ? by : -by;
  Builder& b = x.builder();
  return b.op(Opcode::pad, {x, b.scalar(x.dtype(), fill)}, {{"low", low}, {"high", high}});
}

// In steps of 1, 2, 4, ...: after each, an element covers twice as many elements before it.
std::vector<Value> spell_cumulative(Builder&, Op op, std::span<const Value> in) {
  const std::string& kind = op.word("kind");
  if (kind == "sum") return {};
  const Opcode combine = combine_of(kind);
  const double fill = std::get<double>(identity_of(combine, in[0].dtype()));
  const int axis = static_cast<int>(op.integer("axis"));
  const bool is_reverse = op.flag("reverse");
  Value x = op.flag("exclusive") ? shifted(in[0], axis, 1, is_reverse, fill) : in[0];
  const int64_t length = in[0].dim(axis).range().high;
  for (int64_t by = 1; by < length; by *= 2)
    x = binary(combine, x, shifted(x, axis, by, is_reverse, fill));
  return {x};
}

}  // namespace

const Derivative derivative_reduce = {.tangent = reduce_tangent, .transpose = reduce_back};
const Derivative derivative_cumulative = {.transpose = cumulative_back,
                                          .spelling = spell_cumulative};

}  // namespace hone
