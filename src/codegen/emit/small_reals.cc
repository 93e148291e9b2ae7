#include "codegen/emit/small_reals.h"

#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "tensor/real_format.h"

namespace hone::code {

namespace {
constexpr int kMantissaBits = 23, kBias = 127;  // of f32
constexpr int kBf16Cut = 16;                    // the bits that a bf16 lacks of an f32
constexpr int64_t kInfinity = 0x7f800000, kNan = 0x7fc00000, kMagnitude = 0x7fffffff;
}  // namespace

// Multiplying by a power of two moves the exponent, of subnormal patterns too.
Value SmallReals::decode(DType dtype, Value pattern) {
  if (dtype == DType::f16 && has_f16_)
    return apart(code_.extf(code_.bitcast(pattern, code_.builder().getF16Type()), code_.f32()));
  const RealFormat& format = real_format(dtype);
  const Value wide = code_.resized(pattern, code_.i(32), false);
  if (dtype == DType::bf16) return code_.bitcast(code_.shl(wide, kBf16Cut), code_.f32());
  const Value magnitude =
      format.sign == 0 ? wide : code_.and_(wide, code_.integer(format.sign - 1, wide));
  const Value shifted = code_.shl(magnitude, kMantissaBits - format.mantissa_bits);
  Value size = code_.bitcast(shifted, code_.f32());
  if (format.bias != kBias)
    size = code_.fmul(size, code_.real(power_of_two(kBias - format.bias), size));
  Value bits = code_.bitcast(size, code_.i(32));
  if (format.has_negative_zero) {
    const bool has_infinity = format.overflow != format.nan;
    Value special = code_.integer(kNan, bits);
    if (has_infinity) {
      const Value overflow = code_.integer(format.overflow, magnitude);
      special = code_.select(code_.compare(Ints::eq, magnitude, overflow),
                             code_.integer(kInfinity, bits), special);
    }
    const Value highest = code_.integer(format.highest, magnitude);
    bits = code_.select(code_.compare(Ints::ugt, magnitude, highest), special, bits);
  }
  if (!format.has_zero) {
    const Value least = code_.bitcast(code_.real(power_of_two(-format.bias), size), code_.i(32));
    const Value is_least = code_.compare(Ints::eq, magnitude, code_.integer(0, magnitude));
    bits = code_.select(is_least, least, bits);
  }
  if (format.sign != 0) {
    const Value sign = code_.and_(wide, code_.integer(format.sign, wide));
    const int to_the_left = 32 - std::bit_width(format.sign);
    bits = code_.or_(bits, code_.shl(sign, to_the_left));
  }
  if (!format.has_negative_zero) {
    const Value nan = code_.integer(format.sign, wide);
    bits = code_.select(code_.compare(Ints::eq, wide, nan), code_.integer(kNan, bits), bits);
  }
  return code_.bitcast(bits, code_.f32());
}

Value SmallReals::encode(DType dtype, Value real) {
  const mlir::Type stored = code_.i(std::max(bits(dtype), 8));
  if (code_.element(real).isF64()) real = rounded_to_odd(real);
  if (dtype == DType::f16 && has_f16_)
    return code_.bitcast(code_.truncf(real, code_.builder().getF16Type()), stored);
  const RealFormat& format = real_format(dtype);
  const Value pattern = code_.bitcast(real, code_.i(32));
  const Value size = code_.and_(pattern, code_.integer(kMagnitude, pattern));

  // Normal results: round to nearest even in the bits, then move the exponent. Without a mantissa
  // the last bit is the leading 1, which is odd.
  const int cut = kMantissaBits - format.mantissa_bits;
  const Value zero = code_.integer(0, size), one = code_.integer(1, size);
  const Value is_odd = format.mantissa_bits == 0 ? one : code_.and_(code_.shr(size, cut), one);
  Value rounded = code_.add(size, code_.integer((int64_t{1} << (cut - 1)) - 1, size));
  rounded = code_.shr(HONE_PLANT(small_truncated, code_.add(rounded, is_odd), size), cut);
  if (dtype == DType::bf16) {
    // Subnormal numbers and infinity are where rounding leads.
    const Value is_nan = code_.compare(Ints::ugt, size, code_.integer(kInfinity, size));
    const Value number = code_.select(is_nan, code_.integer(format.nan, size), rounded);
    const Value sign = code_.and_(code_.shr(pattern, kBf16Cut), code_.integer(format.sign, size));
    return code_.resized(code_.or_(number, sign), stored, false);
  }
  const int64_t moved = int64_t{kBias - format.bias} << format.mantissa_bits;
  rounded = code_.sub(rounded, code_.integer(moved, rounded));
  // Subnormal results are counted in units of the least one: the last place of a larger number.
  const double least_normal = power_of_two(1 - format.bias);
  const double large = power_of_two(kMantissaBits + 1 - format.bias - format.mantissa_bits);
  const Value positive = code_.bitcast(size, code_.f32());
  const Value lifted = code_.fadd(positive, code_.real(large, positive));
  const Value counted = code_.sub(code_.bitcast(lifted, code_.i(32)),
                                  code_.bitcast(code_.real(large, positive), code_.i(32)));
  // Without a zero there are two results below: the least number and the least normal one.
  const Value middle = code_.real(0.75 * least_normal, positive);
  const Value is_upper = code_.compare(Ints::uge, size, code_.bitcast(middle, code_.i(32)));
  const Value small = format.has_zero ? counted : code_.select(is_upper, one, zero);
  Value result = code_.select(
      code_.compare(Reals::OLT, positive, code_.real(least_normal, positive)), small, rounded);
  result = code_.select(code_.compare(Ints::sgt, result, code_.integer(format.highest, result)),
                        code_.integer(format.overflow, result), result);
  result = code_.select(code_.compare(Ints::ugt, size, code_.integer(kInfinity, size)),
                        code_.integer(format.nan, result), result);

  if (format.sign == 0) return code_.resized(result, stored, false);
  const int to_the_right = 32 - std::bit_width(format.sign);
  const Value sign = code_.and_(code_.shr(pattern, to_the_right), code_.integer(format.sign, size));
  Value with_sign = code_.or_(result, sign);
  if (!format.has_negative_zero) {
    const Value is_zero = code_.compare(Ints::eq, result, code_.integer(0, result));
    with_sign = code_.select(is_zero, result, with_sign);
  }
  return code_.resized(with_sign, stored, false);
}

// LLVM takes an op on widened halves for one on halves, wherever it sees both. No machine of these
// levels computes on halves. LLVM 19 makes scalar code of most such ops; its code for `maximum` and
// `minimum` loses NaN and the signs of zeros. So it must not see where an f32 comes from.
Value SmallReals::apart(Value f32) {
  return code_.builder()
      .create<mlir::LLVM::CallIntrinsicOp>(f32.getType(), "llvm.arithmetic.fence", f32)
      .getResults();
}

// An f32 with its last bit set where it is inexact: rounding that again is rounding once.
Value SmallReals::rounded_to_odd(Value f64) {
  const Value near = code_.truncf(f64, code_.f32());
  const Value back = code_.extf(near, code_.f64());
  auto size = [&](Value x) {
    const Value pattern = code_.bitcast(x, code_.i(64));
    return code_.and_(pattern, code_.integer(INT64_MAX, pattern));
  };
  const Value is_inexact = code_.compare(Reals::ONE, back, f64);
  const Value is_larger = code_.compare(Ints::ugt, size(back), size(f64));
  const Value pattern = code_.bitcast(near, code_.i(32));
  const Value below = code_.sub(pattern, code_.integer(1, pattern));
  const Value toward_zero = code_.select(is_larger, below, pattern);
  const Value odd = code_.or_(toward_zero, code_.integer(1, pattern));
  return code_.bitcast(code_.select(is_inexact, odd, pattern), code_.f32());
}

}  // namespace hone::code
