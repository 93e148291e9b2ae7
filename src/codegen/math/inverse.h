#pragma once

#include <optional>

#include "codegen/math/number.h"

// atan, and the inverse functions that are angles of points.

namespace hone::math {

// atan t = t + t z P(z), z = t^2, on |t| <= tan(pi/8); relative, to 2^-35 and 2^-58.
inline constexpr double kAtanShort[] = {-0x1.555554c898823p-2, 0x1.99991a48d1146p-3,
                                        -0x1.247f069849c71p-3, 0x1.c46804aefd872p-4,
                                        -0x1.5b45783de2daap-4, 0x1.84f5f632ad591p-5};
inline constexpr double kAtanF64[] = {
    -0x1.5555555555554p-2, 0x1.999999999965ap-3, -0x1.2492492475d5ep-3, 0x1.c71c71b778fc1p-4,
    -0x1.745d14bfd5f08p-4, 0x1.3b136eaf72d71p-4, -0x1.110c79e20fe1dp-4, 0x1.e17283f373a89p-5,
    -0x1.ab80acbac5dbcp-5, 0x1.70f9add7737f2p-5, -0x1.1253965d6b5e1p-5, 0x1.f2562eca0da35p-7};

inline constexpr double kPi = 0x1.921fb54442d18p+1;

// The angle of a point with y >= 0 and x >= 0, not both zero nor both infinite, in [0, pi/2]; or,
// where `mirrored`, that of (-x, y).
template <Precision precision, class A>
F64<A> angle_of(F64<A> y, F64<A> x, std::optional<Truth<A>> mirrored = {}) {
  Truth<A> steep = y > x;
  F64<A> low = select(steep, x, y);
  F64<A> high = select(steep, y, x);
  if constexpr (precision == Precision::full) {  // away from where sums overflow or round
    F64<A> scale = select(high > 0x1p1000, 0.25, select(high < 0x1p-900, y.with(0x1p100), 1.0));
    low = low * scale;
    high = high * scale;
  }
  // Beyond pi/8 from the axes, measure from the diagonal.
  Truth<A> diagonal = low > high * 0x1.a827999fcef32p-2;
  F64<A> t = select(diagonal, low - high, low) / select(diagonal, low + high, high);
  F64<A> z = t * t;
  F64<A> p = z;
  if constexpr (precision == Precision::single)
    p = polynomial(z, kAtanShort);
  else
    p = polynomial(z, kAtanF64);
  F64<A> angle = fma(t * z, p, t);
  F64<A> base = select(diagonal, y.with(kPi / 4), 0.0);
  // Each fold of the plane turns the angle around; the sum is done once.
  Truth<A> turned = steep;
  base = select(steep, kPi / 2 - base, base);
  if (mirrored) {
    base = select(*mirrored, kPi - base, base);
    turned = (steep & !*mirrored) | (*mirrored & !steep);
  }
  return base + select(turned, negate(angle), angle);
}

template <Precision precision = Precision::full, class A>
F64<A> atan(F64<A> x) {
  return with_sign_of(angle_of<precision>(abs(x), x.with(1)), x);
}

// y >= 0 such that (x, y) is on the unit circle; NaN where there is none.
template <class A>
F64<A> on_circle(F64<A> x) {
  return sqrt((1.0 - x) * (x + 1.0));
}

template <Precision precision = Precision::full, class A>
F64<A> asin(F64<A> x) {
  F64<A> size = abs(x);
  return with_sign_of(angle_of<precision>(size, on_circle(size)), x);
}

template <Precision precision = Precision::full, class A>
F64<A> acos(F64<A> x) {
  F64<A> size = abs(x);
  return angle_of<precision>(on_circle(size), size, std::optional(x < 0.0));
}

template <Precision precision = Precision::full, class A>
F64<A> atan2(F64<A> y, F64<A> x) {
  F64<A> height = abs(y);
  F64<A> width = abs(x);
  Truth<A> infinite = (height == height.with(Format<double>::kInfinity)) & (width == height);
  Truth<A> zero = (height == height.with(0)) & (width == height);
  height = select(infinite, 1.0, height);
  width = select(infinite | zero, 1.0, width);
  return with_sign_of(angle_of<precision>(height, width, std::optional(sign_is_set(x))), y);
}

}  // namespace hone::math
