#pragma once

#include "codegen/math/exp.h"

// erf x = x + x P(x^2) for small x; for larger ones 1 - e^-G(x), where e^-G is 1 - erf.

namespace hone::math {

// P on |x| <= 0.875, to 2^-27 of erf x.
inline constexpr float kErfSmallF32[] = {0x1.06eba8p-3f,  -0x1.812744p-2f, 0x1.ce2e8ep-4f,
                                         -0x1.b81a72p-6f, 0x1.5542a6p-8f,  -0x1.aec8a8p-11f,
                                         0x1.6cdc88p-14f};
// G(x) on [0.875, 4]: erf to 2^-26. There is no f32 below 1 that is nearer to erf 4.
inline constexpr float kErfLargeF32[] = {0x1.00f83cp-12f, 0x1.209ebap+0f,  0x1.46812cp-1f,
                                         0x1.a77142p-4f,  -0x1.66f898p-6f, 0x1.8294dep-9f,
                                         -0x1.837262p-13f};
// P on |x| <= 0.8366, to 2^-56 of erf x.
inline constexpr double kErfSmallF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042afcp-4,  -0x1.b82ce31282b46p-6,
    0x1.565bcd0d1de25p-8,  -0x1.c02db3ab52f9dp-11, 0x1.f9a319349719bp-14, -0x1.f4d0e34a8f22bp-17,
    0x1.b9cbd061d97b3p-20, -0x1.5e2beeaf30ea9p-23, 0x1.e8c0bac3d4fcap-27, -0x1.eaf98fa355774p-31};
// G(1 + u) on [0.83, 6]: erf to 2^-58. There is no f64 below 1 that is nearer to erf 6.
inline constexpr double kErfLargeF64[] = {
    0x1.d97fbf27aa2a1p+0,   0x1.51c9b0006c23dp+1,   0x1.afabc11a28f3dp-1,   0x1.5477f09ca94f1p-5,
    -0x1.48c9d40c13025p-7,  0x1.033f699502353p-9,   -0x1.f1b4bb357a2bap-13, -0x1.b8be6eab0dc13p-16,
    0x1.c75a26b44a6b6p-16,  -0x1.415b5d91ec81cp-17, 0x1.0edcd41a2f8cep-19,  -0x1.b401ec895813fp-24,
    -0x1.1460a921dff10p-23, 0x1.2c03750d272f4p-24,  -0x1.844b998511d93p-26, 0x1.6ec738f143b71p-28,
    -0x1.0460f80084b67p-30, 0x1.100ff610abb2fp-33,  -0x1.8af84b3ae3efbp-37, 0x1.62c5afbfcdd2ap-41,
    -0x1.27c46b23db3e2p-46};

template <class T>
struct ErfConstants;
template <>
struct ErfConstants<float> {
  static constexpr const auto& kSmall = kErfSmallF32;
  static constexpr const auto& kLarge = kErfLargeF32;
  static constexpr float kBorder = 0.875, kOrigin = 0, kOne = 4;
};
template <>
struct ErfConstants<double> {
  static constexpr const auto& kSmall = kErfSmallF64;
  static constexpr const auto& kLarge = kErfLargeF64;
  static constexpr double kBorder = 0.8359375, kOrigin = 1, kOne = 6;
};

template <class A, class T>
Number<A, T> erf(Number<A, T> x) {
  using C = ErfConstants<T>;
  Number<A, T> size = at_most(abs(x), C::kOne);
  Number<A, T> small = fma(size, polynomial(size * size, C::kSmall), size);
  Number<A, T> g = polynomial(size - C::kOrigin, C::kLarge);
  Reduced<A, T> reduced = reduce(negate(g));
  Number<A, T> power = reduced.power();
  Number<A, T> minus_one = exp_minus_one<Precision::full>(reduced.r);
  Number<A, T> large = (T(1) - power) - power * minus_one;
  return with_sign_of(select(size < C::kBorder, small, large), x);
}

}  // namespace hone::math
