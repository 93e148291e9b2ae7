#include "front/onnx/ops/quantize.h"

#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

constexpr DTypeSet kNarrow = DTypeSet{DType::u8, DType::i8, DType::u16, DType::i16} | kShortInteger;
constexpr DTypeSet kWide = {DType::u16, DType::i16, DType::i32};

// The scale (or zero point) of each element of x.
Value spread(Value v, Value x, Granularity g) {
  if (v.rank() == 0) return v;
  const int axis = static_cast<int>(g.axis);
  if (g.block == 0) return broadcast(v, x.dims(), {g.axis});
  Value repeated = unsqueeze(v, axis + 1);
  Dims dims = repeated.dims();
  dims[static_cast<size_t>(axis) + 1] = g.block;
  repeated = broadcast_to(repeated, dims);
  dims.erase(dims.begin() + axis + 1);
  dims[static_cast<size_t>(axis)] = v.dim(axis) * g.block;
  return slice(reshape(repeated, dims), axis, 0, x.dim(axis));
}

// One number, a vector along the axis, or one per block. A tensor of one element counts as one
// number.
void check_granularity(Node& n, Value x, Value& scale, Value& zero, Granularity g) {
  scale = as_scalar(scale);
  if (zero) zero = as_scalar(zero);
  if (zero && zero.dims() != scale.dims()) {
    n.bad("the zero point is {}, the scale {}: their shapes differ", zero.type().to_string(),
          scale.type().to_string());
  }
  if (scale.rank() == 0) return;
  const Dim along = x.dim(static_cast<int>(g.axis));
  Dims want = {along};
  if (g.block > 0) {
    want = x.dims();
    want[static_cast<size_t>(g.axis)] = ceildiv(along, g.block);
  }
  if (scale.dims() != want) {
    n.bad("the scale is {}, want {} for {} along axis {} with block size {}",
          scale.type().to_string(), Type::get(scale.dtype(), want).to_string(),
          x.type().to_string(), g.axis, g.block);
  }
}

Granularity granularity(Node& n, Value x, Value scale) {
  Granularity g;
  const int64_t fallback = x.rank() == 1 ? 0 : 1;
  const int64_t axis = n.version() >= 13 ? n.integer("axis", fallback) : fallback;
  if (n.version() >= 21) g.block = n.integer("block_size", 0);
  if (g.block < 0 || g.block > kMaxElements) n.bad("block_size is {}", g.block);
  // A number for all needs no axis, whatever the attribute says.
  if (as_scalar(scale).rank() > 0) g.axis = n.axis_in(axis, x.rank());
  return g;
}

Attrs attributes(Granularity g) { return {{"axis", g.axis}, {"block", g.block}}; }

// Out of range numbers, infinities too, become the highest ones unless `saturate` is off.
Value to_float8(Value x, DType dtype, bool saturate) {
  const double highest = highest_finite(dtype);
  return cast(saturate ? maximum(minimum(x, highest), -highest) : x, dtype);
}

}  // namespace

Value as_scalar(Value v) { return v.rank() > 0 && v.type().elements().is(1) ? reshape(v, {}) : v; }

Value dequantized(Node& n, Value x, Value scale, Value zero, Granularity g) {
  if (!(kNarrow | kWide | kShortReal).contains(x.dtype())) {
    n.bad("the input is {}, which is not a quantized type", name(x.dtype()));
  }
  if (!is_real(scale.dtype())) n.bad("the scale is {}, want reals", name(scale.dtype()));
  if (zero && zero.dtype() != x.dtype()) {
    n.bad("the zero point is {}, the input {}", name(zero.dtype()), name(x.dtype()));
  }
  check_granularity(n, x, scale, zero, g);
  // Differences of wide integers are no numbers of the short real types.
  const DType result = scale.dtype();
  if (kWide.contains(x.dtype()) && result != DType::f64) scale = cast(scale, DType::f32);
  return cast(n.builder().op(Opcode::dequantize, {x, scale, zero}, attributes(g)), result);
}

Value dequantized_at(Node& n, size_t first) {
  return dequantized(n, n.in(first), n.in(first + 1), n.optional(first + 2));
}

Value quantized(Node& n, Value x, Value scale, Value zero, DType dtype, Granularity g) {
  if (!kNarrow.contains(dtype)) n.bad("cannot quantize to {}", name(dtype));
  check_granularity(n, x, scale, zero, g);
  const bool exact = scale.dtype() == DType::f64 || scale.dtype() == DType::f32;
  if (!exact && kWide.contains(dtype)) {
    // The sum with the zero point needs more digits than the quotient.
    x = cast(cast(x, scale.dtype()) / spread(scale, x, g), DType::f32);
    scale = n.builder().full(DType::f32, scale.dims(), 1);
  }
  Attrs attrs = attributes(g);
  attrs.emplace_back("dtype", dtype);
  return x.builder().op(Opcode::quantize, {cast(x, scale.dtype()), scale, zero}, std::move(attrs));
}

Value requantized(Node& n, Value x, Value scale, const Spread& spread, Value y_scale, Value zero,
                  DType dtype, Granularity g) {
  y_scale = as_scalar(y_scale);
  const bool is_one_number = y_scale.rank() == 0 && (!zero || as_scalar(zero).rank() == 0);
  if (!is_one_number || !kNarrow.contains(dtype) || y_scale.dtype() != DType::f32 ||
      (zero && zero.dtype() != dtype))
    return quantized(n, x * spread(scale), y_scale, zero, dtype, g);
  Value y = unary(Opcode::round, x * spread(scale / y_scale));
  if (zero) y = y + cast(as_scalar(zero), DType::f32);
  return cast(y, dtype);
}

Value quantized_at(Node& n, Value x, size_t first, DType fallback) {
  Value zero = n.optional(first + 1);
  return quantized(n, x, n.in(first), zero, zero ? zero.dtype() : fallback);
}

Value centered(Node& n, Value x, Value zero) {
  if (!is_integer(x.dtype()) || bits(x.dtype()) > 8)
    n.bad("an operand is {}, want integers of 8 bits", name(x.dtype()));
  if (zero && zero.dtype() != x.dtype())
    n.bad("the zero point is {}, the operand {}", name(zero.dtype()), name(x.dtype()));
  x = cast(x, DType::i32);
  return zero ? x - cast(zero, DType::i32) : x;
}

Dynamic dynamically_quantized(Node& n, Value x) {
  if (!is_real(x.dtype())) n.bad("x is {}, want reals", name(x.dtype()));
  Ints all;
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  Value high = maximum(reduce_max(x, all), 0), low = minimum(reduce("min", x, all), 0);
  Value range = high - low;
  Value one = x.builder().scalar(x.dtype(), 1);
  Dynamic d;
  d.scale = select(compare("eq", range, 0), one, range) / 255;
  d.zero = unary(Opcode::round, maximum(minimum(-low / d.scale, 255), 0));
  d.zero = cast(d.zero, DType::u8);
  d.y = quantized(n, x, d.scale, d.zero, DType::u8);
  return d;
}

void map_quantize_linear(Node& n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!is_real(x.dtype()) && x.dtype() != DType::i32)
    n.bad("the input is {}, want reals or i32", name(x.dtype()));
  const Granularity g = granularity(n, x, scale);
  DType dtype = zero ? zero.dtype() : DType::u8;
  if (n.version() >= 21 && n.integer("output_dtype", 0) != 0) {
    dtype = n.dtype("output_dtype", dtype);
    if (zero && zero.dtype() != dtype) {
      n.bad("output_dtype is {}, the zero point {}", name(dtype), name(zero.dtype()));
    }
  }
  DType precision = kReal.contains(scale.dtype()) ? scale.dtype() : DType::f32;
  if (n.version() >= 23 && n.integer("precision", 0) != 0) {
    precision = n.dtype("precision", precision);
    if (!kReal.contains(precision)) n.bad("precision is {}, want reals", name(precision));
  }
  const bool saturate = n.version() < 19 || n.flag("saturate", true);
  scale = cast(scale, precision);
  if (!kShortReal.contains(dtype)) return n.out(quantized(n, x, scale, zero, dtype, g));
  // The zero point of these only names the type.
  check_granularity(n, x, scale, zero, g);
  n.out(to_float8(cast(x, precision) / spread(scale, x, g), dtype, saturate));
}

void map_dequantize_linear(Node& n) {
  Value x = n.in(0), scale = n.in(1);
  if (is_storage_only(scale.dtype())) scale = cast(scale, DType::f32);  // f8e8m0
  const Granularity g = granularity(n, x, scale);
  DType dtype = scale.dtype();
  if (n.version() >= 23 && n.integer("output_dtype", 0) != 0) {
    dtype = n.dtype("output_dtype", dtype);
    if (!kReal.contains(dtype)) n.bad("output_dtype is {}, want reals", name(dtype));
    // Computed in the wider of the two types.
    if (bits(dtype) > bits(scale.dtype())) scale = cast(scale, dtype);
  }
  n.out(cast(dequantized(n, x, scale, n.optional(2), g), dtype));
}

void map_dynamic_quantize_linear(Node& n) {
  const Dynamic d = dynamically_quantized(n, n.in());
  n.out_all({d.y, d.scale, d.zero});
}

namespace {

// For rows of a matrix: a vector becomes a column.
Value per_row(Value v) {
  v = as_scalar(v);
  return v.rank() == 1 ? unsqueeze(v, 1) : v;
}

}  // namespace

void map_qlinear_matmul(Node& n) {
  Value a = n.in(0), b = n.in(3), y_zero = n.in(7);
  n.require_rank(a, "a", 1);
  n.require_rank(b, "b", 1);
  Value a_scale = n.in(1), b_scale = n.in(4);
  Value a_zero = n.in(2), b_zero = as_scalar(n.in(5));
  if (a.rank() > 1) a_scale = per_row(a_scale), a_zero = per_row(a_zero);
  Value product;
  if (kShortReal.contains(a.dtype())) {
    product = matmul(cast(a, DType::f32), cast(b, DType::f32));
  } else {
    product = cast(matmul(centered(n, a, a_zero), centered(n, b, b_zero)), DType::f32);
  }
  const Value scale = cast(as_scalar(a_scale), DType::f32) * cast(as_scalar(b_scale), DType::f32);
  Value y_scale = cast(as_scalar(n.in(6)), DType::f32);
  y_zero = as_scalar(y_zero);
  const int64_t rows = product.rank() - 2;
  const Granularity by_rows = {.axis = rows < 0 ? 0 : rows};
  if (!kShortReal.contains(y_zero.dtype()))
    return n.out(
        requantized(n, product, scale, std::identity(), y_scale, y_zero, y_zero.dtype(), by_rows));
  n.out(to_float8(product * scale / per_row(y_scale), y_zero.dtype(), true));
}

}  // namespace hone::onnx_io
