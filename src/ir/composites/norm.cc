#include "ir/composites/expansion.h"
#include "ir/derivatives/rules.h"
#include "tensor/demand.h"

// Softmax and the normalizations.

namespace hone {
namespace {

using In = std::span<const Value>;

// ---- Softmax ------------------------------------------------------------------------------------

std::vector<Value> expand_softmax(Builder& b, Op op, In in) {
  Value x = in[0];
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return {};
  Value e = exp(x - reduce_max(x, {*axis}, true));
  return {e / reduce_sum(e, {*axis}, true)};
}

std::vector<Value> expand_log_softmax(Builder& b, Op op, In in) {
  Value x = in[0];
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return {};
  Value shifted = x - reduce_max(x, {*axis}, true);
  return {shifted - log(reduce_sum(exp(shifted), {*axis}, true))};
}

// ---- Normalization ------------------------------------------------------------------------------

// (x - mean) / sqrt(variance + epsilon) over the axes.
Value standardized(Value x, const Ints& axes, double epsilon) {
  Value centered = x - reduce_mean(x, axes, true);
  Value variance = reduce_mean(centered * centered, axes, true);
  return centered / sqrt(variance + epsilon);
}

Value scaled(Value x, Value scale, Value bias) {
  if (scale) x = x * broadcast_to(scale, x.dims());
  if (bias) x = x + broadcast_to(bias, x.dims());
  return x;
}

std::vector<Value> expand_layer_norm(Builder& b, Op op, In in) {
  Value x = in[0], scale = operand_or_none(in, 1), bias = operand_or_none(in, 2);
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return {};
  const Type inner = Type::get(x.dtype(), dims_from(x.type().dims(), *axis, x.rank()));
  if (!need_type(b, "scale", scale, inner) || !need_type(b, "bias", bias, inner)) return {};
  Value y = standardized(x, int_range(*axis, x.rank()), op.real("epsilon"));
  return {scaled(y, scale, bias)};
}

std::vector<Value> expand_rms_norm(Builder& b, Op op, In in) {
  Value x = in[0], scale = operand_or_none(in, 1);
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return {};
  const Type inner = Type::get(x.dtype(), dims_from(x.type().dims(), *axis, x.rank()));
  if (!need_type(b, "scale", scale, inner)) return {};
  Value mean_square = reduce_mean(x * x, int_range(*axis, x.rank()), true);
  return {scaled(x * rsqrt(mean_square + op.real("epsilon")), scale, Value())};
}

std::vector<Value> expand_batch_norm(Builder& b, Op op, In in) {
  Value x = in[0], scale = in[1], bias = in[2], mean = in[3], variance = in[4];
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return {};
  const Type channel = Type::get(x.dtype(), {x.dim(*axis)});
  if (!need_type(b, "scale", scale, channel) || !need_type(b, "bias", bias, channel) ||
      !need_type(b, "mean", mean, channel) || !need_type(b, "variance", variance, channel)) {
    return {};
  }
  Value factor = scale / sqrt(variance + op.real("epsilon"));
  Value centered = x - along(mean, x.dims(), *axis);
  return {centered * along(factor, x.dims(), *axis) + along(bias, x.dims(), *axis)};
}

std::vector<Value> expand_group_norm(Builder& b, Op op, In in) {
  Value x = in[0], scale = in[1], bias = in[2];
  const int64_t groups = op.integer("groups");
  if (!need_rank_at_least(b, "x", x, 2, "[batch, channels, ...]") ||
      !need_positive(b, "groups", groups)) {
    return {};
  }
  const Type channel = Type::get(x.dtype(), {x.dim(1)});
  if (!need_type(b, "scale", scale, channel) || !need_type(b, "bias", bias, channel)) return {};
  const std::optional<Dim> per_group = x.dim(1).divided_by(groups);
  if (!per_group) {
    demand(Demand::Kind::multiple, x.dim(1), groups);
    return failed(b, bad_input("the {} channels are not divisible by {} groups",
                               x.dim(1).to_string(), groups));
  }
  const Dim size = *per_group * product(dims_from(x.type().dims(), 2, x.rank()));
  Value grouped = reshape(x, {x.dim(0), groups, size});
  Value y = reshape(standardized(grouped, {2}, op.real("epsilon")), x.dims());
  return {y * along(scale, x.dims(), 1) + along(bias, x.dims(), 1)};
}

std::vector<Value> expand_instance_norm(Builder& b, Op op, In in) {
  Value x = in[0], scale = in[1], bias = in[2];
  if (!need_rank_at_least(b, "x", x, 3, "[batch, channels, spatial...]")) {
    return {};
  }
  const Type channel = Type::get(x.dtype(), {x.dim(1)});
  if (!need_type(b, "scale", scale, channel) || !need_type(b, "bias", bias, channel)) return {};
  Value y = standardized(x, int_range(2, x.rank()), op.real("epsilon"));
  return {y * along(scale, x.dims(), 1) + along(bias, x.dims(), 1)};
}

std::vector<Value> expand_lrn(Builder& b, Op op, In in) {
  Value x = in[0];
  const int64_t size = op.integer("size");
  if (!need_rank_at_least(b, "x", x, 2, "[batch, channels, ...]") ||
      !need_positive(b, "size", size)) {
    return {};
  }
  const size_t rank = static_cast<size_t>(x.rank());
  Ints window(rank, 1), low(rank, 0), high(rank, 0);
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value squares = b.op(
      Opcode::window_reduce, {x * x},
      {{"kind", std::string("sum")}, {"window", window}, {"pad_low", low}, {"pad_high", high}});
  Value base = squares * (op.real("alpha") / static_cast<double>(size)) + op.real("bias");
  return {x / power(base, op.real("beta"))};
}

// ---- Attributes ---------------------------------------------------------------------------------

constexpr AttrSpec kSoftmaxAttrs[] = {
    {"axis", AttrKind::integer, "-1", "the axis that sums to 1; negative counts from the back"}};
constexpr AttrSpec kLayerNormAttrs[] = {
    {"axis", AttrKind::integer, "-1", "the first normalized axis; negative counts from the back"},
    {"epsilon", AttrKind::real, "1e-05", "added to the variance"}};
constexpr AttrSpec kRmsNormAttrs[] = {
    {"axis", AttrKind::integer, "-1", "the first normalized axis; negative counts from the back"},
    {"epsilon", AttrKind::real, "1e-06", "added to the mean square"}};
constexpr AttrSpec kBatchNormAttrs[] = {
    {"epsilon", AttrKind::real, "1e-05", "added to the variance"},
    {"axis", AttrKind::integer, "1", "the channel axis; negative counts from the back"}};
constexpr AttrSpec kGroupNormAttrs[] = {
    {"groups", AttrKind::integer, "", "the number of groups of channels"},
    {"epsilon", AttrKind::real, "1e-05", "added to the variance"}};
constexpr AttrSpec kInstanceNormAttrs[] = {
    {"epsilon", AttrKind::real, "1e-05", "added to the variance"}};
constexpr AttrSpec kLrnAttrs[] = {{"size", AttrKind::integer, "", "channels in the window"},
                                  {"alpha", AttrKind::real, "0.0001", "factor of the mean square"},
                                  {"beta", AttrKind::real, "0.75", "exponent"},
                                  {"bias", AttrKind::real, "1", "added before the power"}};

}  // namespace

extern const OpDef op_def_softmax;
const OpDef op_def_softmax = {
    .opcode = Opcode::softmax,
    .summary = "exp(x) divided by its sum along an axis",
    .semantics =
        "The largest element is subtracted first, so nothing overflows. A NaN makes its "
        "whole row NaN, and so do +inf and a row of -inf alone.",
    .operands = "x",
    .attrs = kSoftmaxAttrs,
    .dtypes = kReal,
    .expand = expand_softmax,
    .derivative = &derivative_softmax};

extern const OpDef op_def_log_softmax;
const OpDef op_def_log_softmax = {
    .opcode = Opcode::log_softmax,
    .summary = "the logarithm of softmax",
    .semantics =
        "x - max - log(sum(exp(x - max))). A NaN makes its whole row NaN, and so do +inf "
        "and a row of -inf alone.",
    .operands = "x",
    .attrs = kSoftmaxAttrs,
    .dtypes = kReal,
    .expand = expand_log_softmax,
    .derivative = &derivative_log_softmax};

extern const OpDef op_def_layer_norm;
const OpDef op_def_layer_norm = {
    .opcode = Opcode::layer_norm,
    .summary = "standardizes over the dims from an axis on",
    .semantics =
        "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the variance divided "
        "by the count; scale and bias have the normalized dims. A NaN makes its whole row "
        "NaN.",
    .operands = "x, scale?, bias?",
    .attrs = kLayerNormAttrs,
    .dtypes = kReal,
    .expand = expand_layer_norm};

extern const OpDef op_def_rms_norm;
const OpDef op_def_rms_norm = {
    .opcode = Opcode::rms_norm,
    .summary = "divides by the root of the mean square over the dims from an axis on",
    .semantics =
        "x / sqrt(mean(x^2) + epsilon) * scale; scale has the normalized dims. A NaN makes "
        "its whole row NaN.",
    .operands = "x, scale?",
    .attrs = kRmsNormAttrs,
    .dtypes = kReal,
    .expand = expand_rms_norm};

extern const OpDef op_def_batch_norm;
const OpDef op_def_batch_norm = {
    .opcode = Opcode::batch_norm,
    .summary = "standardizes each channel by a given mean and variance",
    .semantics =
        "(x - mean) * (scale / sqrt(variance + epsilon)) + bias; scale, bias, mean and "
        "variance are vectors over the channels. A variance below -epsilon gives NaN.",
    .operands = "x, scale, bias, mean, variance",
    .attrs = kBatchNormAttrs,
    .dtypes = kReal,
    .expand = expand_batch_norm};

extern const OpDef op_def_group_norm;
const OpDef op_def_group_norm = {
    .opcode = Opcode::group_norm,
    .summary = "standardizes each group of channels of each batch element",
    .semantics =
        "x is [batch, channels, ...]; groups divides the channels; scale and bias are "
        "vectors over the channels. A NaN makes its whole group NaN.",
    .operands = "x, scale, bias",
    .attrs = kGroupNormAttrs,
    .dtypes = kReal,
    .expand = expand_group_norm};

extern const OpDef op_def_instance_norm;
const OpDef op_def_instance_norm = {
    .opcode = Opcode::instance_norm,
    .summary = "standardizes each channel of each batch element over the spatial dims",
    .semantics =
        "x is [batch, channels, spatial...]; scale and bias are vectors over the channels. "
        "A NaN makes its whole channel NaN.",
    .operands = "x, scale, bias",
    .attrs = kInstanceNormAttrs,
    .dtypes = kReal,
    .expand = expand_instance_norm};

extern const OpDef op_def_lrn;
const OpDef op_def_lrn = {
    .opcode = Opcode::lrn,
    .summary = "divides by a power of the mean square of the neighbouring channels",
    .semantics =
        "x / (bias + alpha/size * sum of x^2)^beta over the channels from "
        "c - floor((size-1)/2) to c + ceil((size-1)/2) that exist. A NaN makes all that "
        "see it NaN.",
    .operands = "x",
    .attrs = kLrnAttrs,
    .dtypes = kReal,
    .expand = expand_lrn};

}  // namespace hone
