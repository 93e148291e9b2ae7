#include "ir/composites/expansion.h"
#include "ir/derivative.h"
#include "tensor/demand.h"

// Pools, indices, blocks and quantization.

namespace hone {
namespace {

using In = std::span<const Value>;

std::vector<Value> expand_global_pool(Builder& b, Op op, In in) {
  Value x = in[0];
  if (!need_rank_at_least(b, "x", x, 3, "[batch, channels, spatial...]")) return {};
  const Ints axes = int_range(2, x.rank());
  return {op.word("kind") == "max" ? reduce_max(x, axes, true) : reduce_mean(x, axes, true)};
}

std::vector<Value> expand_cumsum(Builder& b, Op op, In in) {
  const std::optional<int> axis = axis_in(b, op.integer("axis"), in[0].rank());
  if (!axis) return {};
  return {cumulative("sum", in[0], *axis, op.flag("exclusive"), op.flag("reverse"))};
}

// The single entry of a dims attribute.
std::optional<Dim> only_dim(Builder& b, Op op, std::string_view name) {
  const Dims& dims = op.dims(name);
  if (dims.size() == 1) return dims[0];
  b.fail(bad_input("{} has {} entries, want 1", name, dims.size()));
  return std::nullopt;
}

std::vector<Value> expand_one_hot(Builder& b, Op op, In in) {
  Value indices = in[0], values = operand_or_none(in, 1);
  const std::optional<int> axis = axis_in(b, op.integer("axis"), indices.rank() + 1);
  const std::optional<Dim> depth = only_dim(b, op, "depth");
  if (!axis || !depth) return {};
  if (depth->range().low < 0) {
    return failed(b, bad_input("depth is {}, want 0 or more", depth->to_string()));
  }
  if (values && !need_type(b, "values", values, Type::get(values.dtype(), {2}))) return {};

  // 64 bits hold every depth; what does not fit into i64 is out of range anyway.
  if (indices.dtype() == DType::u64) indices = minimum(indices, 4611686018427387904.0);
  indices = unsqueeze(cast(indices, DType::i64), *axis);
  Dims dims = with_dim(indices.dims(), *axis, *depth);
  Value positions = iota(b, DType::i64, dims, *axis);
  // Position j is also -(depth - j), the complement of what follows j.
  Value from_back = unary(Opcode::not_, reverse(positions, {*axis}));
  indices = broadcast_to(indices, dims);
  Value hit =
      binary(Opcode::or_, compare("eq", indices, positions), compare("eq", indices, from_back));
  if (!values) return {cast(hit, op.dtype("dtype"))};
  return {select(hit, part(values, 0, 1), part(values, 0, 0))};
}

std::vector<Value> expand_top_k(Builder& b, Op op, In in) {
  Value x = in[0];
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  const std::optional<Dim> k = only_dim(b, op, "k");
  if (!axis || !k) return {};
  if (k->range().low < 0 || !provably_le(*k, x.dim(*axis))) {
    demand(Demand::Kind::at_least, x.dim(*axis), *k);
    return failed(b, bad_input("k is {}, want 0 to {}, the size of axis {}", k->to_string(),
                               x.dim(*axis).to_string(), *axis));
  }
  const std::vector<Value> pair = {x, iota(b, DType::i64, x.dims(), *axis)};
  const std::vector<Value> sorted = sort(pair, *axis, op.flag("largest"));
  return {slice(sorted[0], *axis, 0, *k), slice(sorted[1], *axis, 0, *k)};
}

// ---- Blocks -------------------------------------------------------------------------------------

std::vector<Value> expand_depth_to_space(Builder& b, Op op, In in) {
  Value x = in[0];
  const int64_t block = op.integer("block");
  if (!need_rank(b, "x", x, 4, "[batch, channels, height, width]") ||
      !need_positive(b, "block", block)) {
    return {};
  }
  const Dim n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  const std::optional<Dim> out = c.divided_by(block * block);
  if (!out) {
    demand(Demand::Kind::multiple, c, block * block);
    return failed(b, bad_input("the {} channels are not divisible by the square of block {}",
                               c.to_string(), block));
  }
  const bool crd = op.word("mode") == "crd";
  Value y = crd ? transpose(reshape(x, {n, *out, block, block, h, w}), {0, 1, 4, 2, 5, 3})
                : transpose(reshape(x, {n, block, block, *out, h, w}), {0, 3, 4, 1, 5, 2});
  return {reshape(y, {n, *out, h * block, w * block})};
}

std::vector<Value> expand_space_to_depth(Builder& b, Op op, In in) {
  Value x = in[0];
  const int64_t block = op.integer("block");
  if (!need_rank(b, "x", x, 4, "[batch, channels, height, width]") ||
      !need_positive(b, "block", block)) {
    return {};
  }
  const Dim n = x.dim(0), c = x.dim(1);
  const std::optional<Dim> h = x.dim(2).divided_by(block), w = x.dim(3).divided_by(block);
  if (!h || !w) {
    demand(Demand::Kind::multiple, x.dim(h ? 3 : 2), block);
    return failed(b, bad_input("height {} and width {} are not divisible by block {}",
                               x.dim(2).to_string(), x.dim(3).to_string(), block));
  }
  Value y = transpose(reshape(x, {n, c, *h, block, *w, block}), {0, 3, 5, 1, 2, 4});
  return {reshape(y, {n, c * block * block, *h, *w})};
}

// ---- Quantization -------------------------------------------------------------------------------

// scale (or zero_point) over the dims of x: one number, one per index of `axis`, or one per block
// of an axis.
Value spread(Builder& b, std::string_view name, Value v, Value x, Op op) {
  const int64_t block = op.integer("block");
  if (v.rank() == 0) return broadcast_to(v, x.dims());
  const std::optional<int> axis = axis_in(b, op.integer("axis"), x.rank());
  if (!axis) return v;
  if (block == 0) {
    if (!need_type(b, name, v, v.dtype(), {x.dim(*axis)})) return v;
    return along(v, x.dims(), *axis);
  }
  if (!need_positive(b, "block", block)) return v;
  const Dim blocks = ceildiv(x.dim(*axis), block);
  if (!need_type(b, name, v, v.dtype(), with_dim(x.dims(), *axis, blocks))) return v;
  Dims repeated = v.dims();
  repeated.insert(repeated.begin() + *axis + 1, block);
  Value whole = reshape(broadcast_to(unsqueeze(v, *axis + 1), repeated),
                        with_dim(x.dims(), *axis, blocks * block));
  return blocks * block == x.dim(*axis) ? whole : slice(whole, *axis, 0, x.dim(*axis));
}

constexpr DTypeSet kQuantized =
    DTypeSet{DType::u8, DType::i8, DType::u16, DType::i16, DType::i32} | kShortInteger;

std::vector<Value> expand_quantize(Builder& b, Op op, In in) {
  Value x = in[0], scale = in[1], zero = operand_or_none(in, 2);
  const DType dtype = op.dtype("dtype");
  if (!(kQuantized | kShortReal).contains(dtype)) {
    return failed(b, bad_input("cannot quantize to {}", name(dtype)));
  }
  if (!need_type(b, "scale", scale, scale.type().with_dtype(x.dtype())) ||
      !need_type(b, "zero_point", zero, scale.type().with_dtype(dtype))) {
    return {};
  }
  Value y = x / spread(b, "scale", scale, x, op);
  if (kShortReal.contains(dtype)) {
    // These have no saturating cast; infinities and NaN stay.
    const double highest = highest_finite(dtype);
    Value bounded = clamp(y, -highest, highest);
    y = select(unary(Opcode::is_inf, y), y, bounded);
  } else {
    y = unary(Opcode::round, y);
  }
  if (zero) y = y + spread(b, "zero_point", cast(zero, x.dtype()), x, op);
  return {cast(y, dtype)};
}

std::vector<Value> expand_stop_gradient(Builder&, Op, std::span<const Value> in) { return {in[0]}; }

std::vector<Value> expand_dequantize(Builder& b, Op op, In in) {
  Value x = in[0], scale = in[1], zero = operand_or_none(in, 2);
  if (!(kQuantized | kShortReal).contains(x.dtype())) {
    return failed(b, bad_input("cannot dequantize {}", name(x.dtype())));
  }
  if (!need_real(b, "scale", scale) ||
      !need_type(b, "zero_point", zero, scale.type().with_dtype(x.dtype()))) {
    return {};
  }
  // The difference of integers is exact in i32, of i32 in i64.
  const DType inner = kShortReal.contains(x.dtype()) ? scale.dtype()
                      : x.dtype() == DType::i32      ? DType::i64
                                                     : DType::i32;
  // One zero point of a block is cast for each element: a kernel that unpacks weights reads it as
  // it is stored.
  const auto zeros = [&] {
    if (op.integer("block") == 0) return spread(b, "zero_point", cast(zero, inner), x, op);
    return cast(spread(b, "zero_point", zero, x, op), inner);
  };
  Value y = zero ? cast(x, inner) - zeros() : x;
  return {cast(y, scale.dtype()) * spread(b, "scale", scale, x, op)};
}

// ---- Attributes ---------------------------------------------------------------------------------

constexpr AttrSpec kGlobalPoolAttrs[] = {
    {"kind", AttrKind::word, "average", "what is taken over the spatial dims", "average|max"}};
constexpr AttrSpec kCumsumAttrs[] = {
    {"axis", AttrKind::integer, "", "negative counts from the back"},
    {"exclusive", AttrKind::flag, "false", "leaves the element itself out"},
    {"reverse", AttrKind::flag, "false", "sums from the back"}};
constexpr AttrSpec kOneHotAttrs[] = {
    {"depth", AttrKind::dims, "", "one entry: the size of the new axis"},
    {"axis", AttrKind::integer, "-1", "where the new axis stands in the result"},
    {"dtype", AttrKind::dtype, "f32", "of the result, if there are no values"}};
constexpr AttrSpec kTopKAttrs[] = {
    {"k", AttrKind::dims, "", "one entry: how many"},
    {"axis", AttrKind::integer, "-1", "negative counts from the back"},
    {"largest", AttrKind::flag, "true", "the largest, or the smallest"}};
constexpr AttrSpec kDepthToSpaceAttrs[] = {
    {"block", AttrKind::integer, "", "side of the square that a pixel becomes"},
    {"mode", AttrKind::word, "dcr",
     "order in the channels: depth, column, row or column, row, depth", "dcr|crd"}};
constexpr AttrSpec kSpaceToDepthAttrs[] = {
    {"block", AttrKind::integer, "", "side of the square that becomes a pixel"}};
constexpr AttrSpec kQuantizeAttrs[] = {
    {"axis", AttrKind::integer, "1", "the axis that a vector of scales runs along"},
    {"dtype", AttrKind::dtype, "u8", "of the result"},
    {"block", AttrKind::integer, "0", "elements along the axis that share a scale; 0: no blocks"}};
constexpr AttrSpec kDequantizeAttrs[] = {
    {"axis", AttrKind::integer, "1", "the axis that a vector of scales runs along"},
    {"block", AttrKind::integer, "0", "elements along the axis that share a scale; 0: no blocks"}};

}  // namespace

extern const OpDef op_def_global_pool;
const OpDef op_def_global_pool = {
    .opcode = Opcode::global_pool,
    .summary = "the average or maximum over all spatial dims",
    .semantics =
        "x is [batch, channels, spatial...]; the spatial dims become 1. No elements: the "
        "average is NaN, the maximum -inf. NaN wins.",
    .operands = "x",
    .attrs = kGlobalPoolAttrs,
    .dtypes = kReal,
    .expand = expand_global_pool};

extern const OpDef op_def_cumsum;
const OpDef op_def_cumsum = {.opcode = Opcode::cumsum,
                             .summary = "running sums along an axis",
                             .semantics = "Integers wrap. exclusive starts with 0.",
                             .operands = "x",
                             .attrs = kCumsumAttrs,
                             .dtypes = kNumber,
                             .expand = expand_cumsum};

extern const OpDef op_def_one_hot;
const OpDef op_def_one_hot = {
    .opcode = Opcode::one_hot,
    .summary = "a new axis that is on at the index and off elsewhere",
    .semantics =
        "values is [off, on]; without it they are 0 and 1. An index from -depth to -1 "
        "counts from the back; other indices out of range give all off.",
    .operands = "indices, values?",
    .attrs = kOneHotAttrs,
    .dtypes = kInteger,
    .expand = expand_one_hot};

extern const OpDef op_def_top_k;
const OpDef op_def_top_k = {
    .opcode = Opcode::top_k,
    .summary = "the k largest (or smallest) elements along an axis, in order, and their indices",
    .semantics = "Among equals the lower index comes first. NaN is the greatest. Indices are i64.",
    .operands = "x",
    .results = "values, indices",
    .attrs = kTopKAttrs,
    .dtypes = kNumber,
    .expand = expand_top_k};

extern const OpDef op_def_depth_to_space;
const OpDef op_def_depth_to_space = {
    .opcode = Opcode::depth_to_space,
    .summary = "moves channels into square blocks of pixels",
    .semantics = "x is [batch, channels, height, width]; block^2 divides the channels.",
    .operands = "x",
    .attrs = kDepthToSpaceAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true},
    .expand = expand_depth_to_space};

extern const OpDef op_def_space_to_depth;
const OpDef op_def_space_to_depth = {
    .opcode = Opcode::space_to_depth,
    .summary = "moves square blocks of pixels into channels",
    .semantics =
        "x is [batch, channels, height, width]; block divides height and width. The "
        "inverse of depth_to_space with mode dcr.",
    .operands = "x",
    .attrs = kSpaceToDepthAttrs,
    .dtypes = kAny,
    .traits = {.moves_data = true},
    .expand = expand_space_to_depth};

extern const OpDef op_def_quantize;
const OpDef op_def_quantize = {
    .opcode = Opcode::quantize,
    .summary = "x / scale + zero_point, rounded and saturated to a narrow type",
    .semantics =
        "The quotient is rounded to the type of x first. Integers: ties round to even before the "
        "zero point is added; the sum saturates; NaN gives "
        "0. f8 and f4: rounded to nearest even, finite numbers saturate, infinities and NaN stay "
        "where "
        "the "
        "type has them (f4e2m1 has neither). scale and zero_point: one number, a vector along "
        "axis, or with block one "
        "per "
        "block of the axis. Division by a scale of 0 gives infinities, which saturate.",
    .operands = "x, scale, zero_point?",
    .attrs = kQuantizeAttrs,
    .dtypes = kReal,
    .traits = {.is_stepwise = true},
    .expand = expand_quantize};

extern const OpDef op_def_dequantize;
const OpDef op_def_dequantize = {
    .opcode = Opcode::dequantize,
    .summary = "(x - zero_point) * scale",
    .semantics =
        "The difference of integers is exact. The result has the element type of scale. "
        "scale and zero_point: as in quantize.",
    .operands = "x, scale, zero_point?",
    .attrs = kDequantizeAttrs,
    .dtypes = kQuantized | kShortReal,
    .expand = expand_dequantize};

extern const OpDef op_def_stop_gradient;
const OpDef op_def_stop_gradient = {.opcode = Opcode::stop_gradient,
                                    .summary = "x, which counts as a constant in derivatives",
                                    .operands = "x",
                                    .dtypes = kReal,
                                    .traits = {.moves_data = true},
                                    .expand = expand_stop_gradient,
                                    .derivative = &kConstantDerivative};

}  // namespace hone
