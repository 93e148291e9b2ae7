#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "front/onnx/write/registry.h"
#include "ir/functional.h"

// Bit patterns. ONNX has no op that reads the bits of a number, so they are computed: a number is
// its sign, its exponent and its significand. Runtimes compute with i64, and shift u64.

namespace hone::onnx_io {
namespace {

struct FloatFormat {
  DType pattern;           // an unsigned integer of the same width
  int mantissa, exponent;  // bits
  DType wide;              // holds all numbers of the format; computed with

  int64_t bias() const { return (int64_t{1} << (exponent - 1)) - 1; }
  int64_t last() const {
    return (int64_t{1} << exponent) - 1;
  }  // the exponent of what is not finite
  int64_t hidden() const { return int64_t{1} << mantissa; }  // of a significand, but in the pattern

  static std::optional<FloatFormat> of(DType dtype) {
    switch (dtype) {
      case DType::f16: return FloatFormat{DType::u16, 10, 5, DType::f32};
      case DType::bf16: return FloatFormat{DType::u16, 7, 8, DType::f32};
      case DType::f32: return FloatFormat{DType::u32, 23, 8, DType::f32};
      case DType::f64: return FloatFormat{DType::u64, 52, 11, DType::f64};
      default: return std::nullopt;
    }
  }

  // The result of `value` for each exponent, from a table.
  template <class F>
  Value by_exponent(Value e, const F& value) const {
    std::vector<double> table;
    for (int64_t i = 0; i <= last(); ++i) table.push_back(value(i));
    const Type type = Type::get(wide, {last() + 1});
    return take(e.builder().constant(Tensor::from_reals(type, table)), e, 0);
  }
};

Value with_bits_of(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.builder().op(Opcode::bitcast, {x}, {{"dtype", dtype}});
}

// The number whose pattern x is.
Value decoded(const FloatFormat& f, Value x, DType to) {
  Builder& b = x.builder();
  const Value pattern = cast(with_bits_of(x, f.pattern), DType::u64);
  auto field = [&](int low, int count) {
    const Value top = binary(Opcode::shift_left, pattern, b.scalar(DType::u64, 64 - low - count));
    return cast(binary(Opcode::shift_right, top, b.scalar(DType::u64, 64 - count)), DType::i64);
  };
  const Value m = field(0, f.mantissa), e = field(f.mantissa, f.exponent);
  const Value sign = field(f.mantissa + f.exponent, 1);
  const Value significand = select(compare("gt", e, 0), m + static_cast<double>(f.hidden()), m);
  const Value scale = f.by_exponent(e, [&](int64_t i) {
    return std::ldexp(1.0, static_cast<int>(std::max<int64_t>(i, 1) - f.bias()) - f.mantissa);
  });
  Value y = cast(significand, f.wide) * scale;
  const Value special =
      select(compare("eq", m, 0), b.scalar(f.wide, std::numeric_limits<double>::infinity()),
             b.scalar(f.wide, std::numeric_limits<double>::quiet_NaN()));
  y = select(compare("eq", e, static_cast<double>(f.last())), special, y);
  return cast(select(compare("gt", sign, 0), unary(Opcode::neg, y), y), to);
}

// The exponent field of a number that is not negative: the last one whose powers of two do not
// exceed it, by bisection.
Value exponent_of(const FloatFormat& f, Value size) {
  Value e = size.builder().full(DType::i64, size.dims(), 0);
  for (int64_t step = int64_t{1} << (f.exponent - 1); step > 0; step /= 2) {
    const Value next = e + static_cast<double>(step);
    const Value least = f.by_exponent(next, [&](int64_t i) {
      return i == f.last() ? std::numeric_limits<double>::infinity()
                           : std::ldexp(1.0, static_cast<int>(i - f.bias()));
    });
    e = select(compare("ge", size, least), next, e);
  }
  return e;
}

// The pattern of x as an unsigned integer.
Value encoded(const FloatFormat& f, Value x) {
  Builder& b = x.builder();
  const Value wide = cast(x, f.wide), one = b.scalar(f.wide, 1);
  const Value is_minus_zero = binary(Opcode::and_, compare("eq", wide, 0),
                                     compare("lt", binary(Opcode::div, one, wide), 0));
  const Value is_negative = binary(Opcode::or_, compare("lt", wide, 0), is_minus_zero);
  const Value size = unary(Opcode::abs, wide), e = exponent_of(f, size);
  const Value is_finite = compare("lt", e, static_cast<double>(f.last()));
  // In two steps, since the scale itself may not be finite.
  Value significand = select(is_finite, size, b.scalar(f.wide, 0));
  for (int half : {0, 1}) {
    significand = significand * f.by_exponent(e, [&](int64_t i) {
      const auto scale = f.mantissa - static_cast<int>(std::max<int64_t>(i, 1) - f.bias());
      return std::ldexp(1.0, half == 0 ? scale / 2 : scale - scale / 2);
    });
  }
  Value m = cast(significand, DType::i64);
  const Value is_normal = binary(Opcode::and_, compare("gt", e, 0), is_finite);
  m = select(is_normal, m - static_cast<double>(f.hidden()), m);
  const double sign = -std::ldexp(1.0, f.mantissa + f.exponent);  // of 64 bits: the least number
  Value pattern = e * static_cast<double>(f.hidden()) + m;
  pattern = select(is_negative, pattern + (f.pattern == DType::u64 ? sign : -sign), pattern);
  const double quiet =
      std::ldexp(static_cast<double>(f.last()), f.mantissa) + std::ldexp(1.0, f.mantissa - 1);
  pattern = select(unary(Opcode::is_nan, wide), b.scalar(DType::i64, quiet), pattern);
  return cast(pattern, f.pattern);
}

}  // namespace

bool export_bitcast(Emit& e) {
  const DType from = e.type(0).dtype(), to = e.op().dtype("dtype");
  // Integers wrap.
  if (is_integer(from) && is_integer(to)) return e.result_is(e.cast(e.in(0), to));
  if (from == to) return e.result_is(e.in(0));
  const std::optional<FloatFormat> source = FloatFormat::of(from), target = FloatFormat::of(to);
  if ((is_real(from) && !source) || (is_real(to) && !target))
    e.unsupported("ONNX has no op that reads the bits of {} as {}", name(from), name(to));
  return e.spelled([&](Builder&, std::span<const Value> v) -> std::vector<Value> {
    const Value pattern = source ? encoded(*source, v[0]) : v[0];
    return {target ? decoded(*target, pattern, to) : with_bits_of(pattern, to)};
  });
}

// Neighbours are added: bits, then pairs, and so on.
bool export_popcount(Emit& e) {
  const DType dtype = e.type(0).dtype();
  DType plain = dtype;
  if (dtype == DType::i64) plain = DType::u64;
  if (dtype == DType::i32) plain = DType::u32;
  if (dtype == DType::i16) plain = DType::u16;
  if (dtype == DType::i8) plain = DType::u8;
  if (is_storage_only(dtype)) e.unsupported("ONNX does not compute with {}", name(dtype));
  return e.spelled([&](Builder& b, std::span<const Value> v) -> std::vector<Value> {
    Value x = v[0];
    if (plain != dtype) x = b.op(Opcode::bitcast, {x}, {{"dtype", plain}});
    for (int width = 1; width < bits(plain); width *= 2) {
      // Ones and zeros in turn, `width` of each.
      const uint64_t mask = ~uint64_t{0} / ((uint64_t{1} << width) + 1);
      const int64_t image = wrap_to(plain, static_cast<int64_t>(mask));
      Value ones = b.constant(Tensor::from_integers(Type::scalar(plain), Ints{image}));
      Value shifted = binary(Opcode::shift_right, x, b.scalar(plain, width));
      x = binary(Opcode::and_, x, ones) + binary(Opcode::and_, shifted, ones);
    }
    return {plain == dtype ? x : b.op(Opcode::bitcast, {x}, {{"dtype", dtype}})};
  });
}

}  // namespace hone::onnx_io
