#include "tensor/special_numbers.h"

#include <cmath>
#include <limits>

#include "tensor/real_format.h"

namespace hone {

namespace {

struct Extent {
  int mantissa_bits;
  int least_normal;  // its exponent
  int highest;       // that of the highest number
};

Extent extent_of(DType dtype) {
  if (dtype == DType::f64) return {52, -1022, 1023};
  if (dtype == DType::f32) return {23, -126, 127};
  const RealFormat& format = real_format(dtype);
  return {format.mantissa_bits, format.has_zero ? 1 - format.bias : -format.bias,
          std::ilogb(highest_finite(dtype))};
}

double of_any_sign(double size, Rng& rng) { return rng.chance(0.5) ? -size : size; }

double denormal(const Extent& extent, Rng& rng) {
  const double least = std::ldexp(1.0, extent.least_normal - extent.mantissa_bits);
  const auto count = int64_t{1} << extent.mantissa_bits;  // of least ones, to the least normal one
  if (rng.chance(0.3)) return least;
  if (rng.chance(0.3)) return static_cast<double>(count - 1) * least;
  return static_cast<double>(rng.between(std::min<int64_t>(1, count - 1), count - 1)) * least;
}

double limit(DType dtype, const Extent& extent, Rng& rng) {
  const double unit = std::ldexp(1.0, -extent.mantissa_bits);
  const double limits[] = {highest_finite(dtype), std::ldexp(1.0, extent.least_normal), 1, 1 + unit,
                           1 - unit / 2};
  return rng.pick(limits);
}

double of_any_exponent(const Extent& extent, Rng& rng) {
  const auto exponent = rng.between(extent.least_normal - extent.mantissa_bits, extent.highest);
  return std::ldexp(1 + rng.uniform(), static_cast<int>(exponent));
}

constexpr uint32_t bit(SpecialSort sort) { return uint32_t{1} << static_cast<int>(sort); }
constexpr uint32_t kAll = (uint32_t{1} << kSpecialSorts) - 1;

}  // namespace

double special_real(DType dtype, SpecialSort sort, Rng& rng) {
  const Extent extent = extent_of(dtype);
  const double size = [&] {
    switch (sort) {
      case SpecialSort::nan: return std::numeric_limits<double>::quiet_NaN();
      case SpecialSort::infinity: return std::numeric_limits<double>::infinity();
      case SpecialSort::zero: return 0.0;
      case SpecialSort::denormal: return denormal(extent, rng);
      case SpecialSort::limit: return limit(dtype, extent, rng);
      case SpecialSort::exponent: return of_any_exponent(extent, rng);
    }
    HONE_CHECK(false, "a special number of sort {}", static_cast<int>(sort));
  }();
  return round_to(dtype, of_any_sign(size, rng));
}

int64_t special_integer(DType dtype, Rng& rng) {
  const IntegerLimits limits = integer_limits(dtype);
  const auto power =
      static_cast<int64_t>(uint64_t{1} << rng.below(static_cast<uint64_t>(bits(dtype))));
  const int64_t numbers[] = {limits.lowest,
                             limits.highest,
                             0,
                             1,
                             -1,
                             power,
                             power - 1,
                             -power,
                             limits.lowest + 1,
                             static_cast<int64_t>(rng())};
  return wrap_to(dtype, rng.pick(numbers));
}

Specials Specials::of(SpecialSort sort, double share) {
  Specials specials;
  specials.share_ = share;
  specials.sorts_ = bit(sort);
  return specials;
}

Specials Specials::of_all_sorts(double share) {
  Specials specials;
  specials.share_ = share;
  specials.sorts_ = kAll;
  return specials;
}

Specials Specials::drawn(Rng& rng) {
  constexpr double kShares[] = {0.05, 0.3, 1};
  constexpr uint32_t kOrderly =
      bit(SpecialSort::nan) | bit(SpecialSort::infinity) | bit(SpecialSort::zero);
  Specials specials;
  specials.share_ = rng.pick(kShares);
  const double which = rng.uniform();
  specials.sorts_ = which < 0.4   ? kOrderly
                    : which < 0.7 ? uint32_t{1} << rng.below(kSpecialSorts)
                                  : kAll;
  return specials;
}

double Specials::real(DType dtype, Rng& rng) const {
  HONE_CHECK(sorts_ != 0, "special numbers of no sort");
  for (;;)
    if (const auto sort = static_cast<SpecialSort>(rng.below(kSpecialSorts));
        (sorts_ & bit(sort)) != 0)
      return special_real(dtype, sort, rng);
}

}  // namespace hone
