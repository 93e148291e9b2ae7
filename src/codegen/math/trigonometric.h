#pragma once

#include "codegen/math/number.h"

// sin, cos, tan. x = n pi/2 + r with whole n and |r| <= pi/4 (and what rounding adds).

namespace hone::math {

// On |r| <= pi/4, with z = r^2. Relative to the results: short to 2^-37 and 2^-33; f64 to 2^-57
// and 2^-59.
//   sin r = r + r z P(z)
//   cos r = 1 - z/2 + z^2 P(z)
inline constexpr double kSinShort[] = {-0x1.5555554cb91fap-3, 0x1.11110895b4c08p-7,
                                       -0x1.a00f9d2a4c0ffp-13, 0x1.6cd83a2e120f4p-19};
inline constexpr double kCosShort[] = {0x1.55554ab270397p-5, -0x1.6c0c8ab6297cbp-10,
                                       0x1.9a020c488f1abp-16};
inline constexpr double kSinF64[] = {-0x1.5555555555549p-3,  0x1.111111110f87ap-7,
                                     -0x1.a01a019c119c8p-13, 0x1.71de3577b953cp-19,
                                     -0x1.ae5e663c9dc65p-26, 0x1.5d93018b3b75ep-33};
inline constexpr double kCosF64[] = {0x1.555555555554cp-5,  -0x1.6c16c16c1517ep-10,
                                     0x1.a01a019cb1cbep-16, -0x1.27e4f809f9f1bp-22,
                                     0x1.1ee9ebeefdafbp-29, -0x1.8fae9f3f0e495p-37};

// 2/pi is needed to as many bits as x has above its point and as a close miss of n pi/2 cancels. A
// large x is scaled down by 2^(shift n), and 2/pi up by as much. Multiples of 4 are dropped from
// the scaled 2/pi: the scaled x stays a whole number, so they are whole turns.
template <size_t parts, size_t rows>
struct TwoOverPi {
  int shift;
  double least;  // scaled numbers are not below it: as many as a number has bits are whole
  double row[rows][parts];
};

// In parts of 28, 28 and 53 bits: products with 24 bits are exact.
inline constexpr TwoOverPi<3, 4> kTwoOverPiSingle = {
    27,
    0x1p23,
    {
        {0x1.45f306cp-1, 0x1.c9c882ap-29, 0x1.4fe13abe8fa9ap-59},
        {-0x1.1b1bbecp-1, 0x1.29fc276p-29, -0x1.05c1596447e49p-58},
        {0x1.4a7f09ep+0, -0x1.4170566p-29, 0x1.bb81b6c52b328p-59},
        {-0x1.505c15ap+0, 0x1.377036ep-29, -0x1.d6a66c3bc6fbep-59},
    }};
// In parts of 53 bits.
inline constexpr TwoOverPi<4, 25> kTwoOverPiFull = {
    40,
    0x1p52,
    {
        {0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, -0x1.6447e493ad4cep-109,
         0x1.e21c820ff28b2p-163},
        {-0x1.bbead603d8a83p+0, 0x1.f534ddc0db629p-56, 0x1.664f10e4107f9p-110,
         0x1.163abdebbc562p-164},
        {-0x1.505c1596447e5p-1, 0x1.b14acc9e21c82p-55, 0x1.fe5163abdebbcp-112,
         0x1.586dc91b8e909p-166},
        {0x1.c0db6295993c4p+0, 0x1.c820ff28b1d5fp-55, -0x1.443a9e48db91cp-112,
         -0x1.6f6c8b47fe6dbp-166},
        {0x1.3c439041fe516p+0, 0x1.d5ef5de2b0db9p-55, 0x1.1b8e909374b8p-110,
         0x1.924bba8274648p-166},
        {-0x1.ae9c5421443aap+0, 0x1.b7246e3a424ddp-56, 0x1.700324977504fp-111,
         -0x1.cdbc603c429c7p-165},
        {-0x1.d4f246dc8e2dfp-3, 0x1.374b801924bbbp-58, -0x1.f62e6de301e21p-112,
         -0x1.38d3b5963045ep-166},
        {-0x1.c5bdb22d1ff9bp+0, -0x1.b4457d8b9b78cp-54, -0x1.e214e34ed658cp-112,
         -0x1.177dca0ad144cp-168},
        {0x1.924bba8274648p-6, 0x1.cfe1deb1cb12ap-60, -0x1.63045df7282b4p-114,
         -0x1.44bb7b16638fep-168},
        {0x1.d1921cfe1deb2p+0, -0x1.a76b2c608bbeep-55, -0x1.415a28976f62dp-109,
         0x1.c7026b45f7e41p-164},
        {0x1.eb1cb129a73efp+0, -0x1.df7282b4512eep-54, 0x1.3a671c09ad17ep-110,
         -0x1.bec66e29c67cbp-168},
        {-0x1.822efb9415a29p-1, 0x1.a24274ce38136p-55, -0x1.741037d8cdc54p-109,
         0x1.cc1a99cfa4e42p-163},
        {0x1.2ebb4484e99c7p+0, 0x1.35a2fbf209cc9p-59, -0x1.4e33e566305b2p-115,
         0x1.08bf177bf2507p-169},
        {0x1.9c7026b45f7e4p+0, 0x1.3991d63983534p-56, -0x1.82d8dee81d108p-110,
         -0x1.b5f13801da001p-166},
        {-0x1.037d8cdc538dp-1, 0x1.a99cfa4e422fcp-55, 0x1.77bf250763ff1p-109,
         0x1.7ffde05980fefp-164},
        {-0x1.c67cacc60b638p+0, 0x1.17e2ef7e4a0ecp-54, 0x1.ff897ffde0598p-108,
         0x1.fde5e2316b415p-165},
        {0x1.3908bf177bf25p-1, 0x1.d8ffc4bffef03p-59, -0x1.9fc04343b9d29p-114,
         -0x1.f592e092c9813p-168},
        {0x1.f9283b1ff898p+0, -0x1.0fd33f8086877p-59, -0x1.d297d64b824b2p-114,
         -0x1.8130d834f648bp-168},
        {0x1.2fffbc0b301fep-1, -0x1.a1dce94beb25cp-57, -0x1.25930261b069fp-113,
         0x1.b74f463f669e6p-168},
        {0x1.fde5e2316b415p-5, -0x1.2e092c98130d8p-60, -0x1.a7b24585ce04dp-115,
         0x1.3cbfd45aea4f7p-169},
        {-0x1.4beb25c12593p-1, -0x1.30d834f648b0cp-56, 0x1.8fd9a797fa8b6p-110,
         -0x1.5b08a7028341dp-165},
        {0x1.367ecf27cb09bp+0, 0x1.d3d18fd9a798p-54, -0x1.5d28ad8453814p-108,
         -0x1.a0e84c2f8c608p-164},
        {-0x1.ec9161738132cp-1, -0x1.a015d28ad8454p-56, 0x1.faf97c5ecf41dp-110,
         -0x1.821d6b5b4565p-166},
        {-0x1.32c3402ba515bp-1, -0x1.14e050683a131p-58, 0x1.0739f78a5292fp-112,
         -0x1.65012813b81cbp-166},
        {0x1.7527bac7ebe5fp+0, 0x1.7b3d0739f78a5p-56, 0x1.497535fdafd89p-111,
         -0x1.ca8bdea7f33eep-170},
    }};

// x scaled down, and the parts of 2/pi scaled up.
template <class A, size_t parts>
struct ScaledTurn {
  F64<A> x;
  std::array<F64<A>, parts> two_over_pi;
};
template <class A, size_t parts, size_t rows>
ScaledTurn<A, parts> scale_turn(F64<A> x, const TwoOverPi<parts, rows>& table) {
  const double down = std::bit_cast<double>(Format<double>::kOne - (int64_t{table.shift} << 52));
  F64<A> size = abs(x);
  F64<A> scale = x.with(1);
  ScaledTurn<A, parts> result;
  for (size_t i = 0; i < parts; ++i) result.two_over_pi[i] = x.with(table.row[0][i]);
  double factor = 1;
  for (size_t row = 1; row < rows; ++row) {
    factor *= down;
    Truth<A> above = size >= table.least / factor;
    scale = select(above, factor, scale);
    for (size_t i = 0; i < parts; ++i)
      result.two_over_pi[i] = select(above, table.row[row][i], result.two_over_pi[i]);
  }
  result.x = x * scale;
  return result;
}

// x as quarters of a turn: the last two bits of the whole ones, and the rest, in radians (`single`
// does without its low part).
template <class A>
struct Quarters {
  Number<A, int64_t> whole;
  Pair<A, double> rest;
};

// The number is whole and below 2^51.
template <class A>
Number<A, int64_t> last_bits(F64<A> whole) {
  return bits(whole + Format<double>::kWhole);
}
template <class A>
F64<A> without_turns(F64<A> quarters) {
  return quarters - round_even(quarters * 0.25) * 4.0;
}

template <Precision precision, class A>
Quarters<A> quarters(F64<A> x) {
  const double half_pi = 0x1.921fb54442d18p+0;
  const double half_pi_low = 0x1.1a62633145c07p-54;
  if constexpr (precision == Precision::single) {
    ScaledTurn<A, 3> t = scale_turn(x, kTwoOverPiSingle);
    F64<A> high = t.x * t.two_over_pi[0];
    F64<A> high_whole = round_even(high);
    // Exact: the closer the sum comes to a whole number, the more its terms cancel.
    F64<A> middle = (high - high_whole) + t.x * t.two_over_pi[1];
    F64<A> middle_whole = round_even(middle);
    F64<A> rest = (middle - middle_whole) + t.x * t.two_over_pi[2];
    return {last_bits(high_whole + middle_whole), {rest * half_pi, x.with(0)}};
  } else {
    ScaledTurn<A, 4> t = scale_turn(x, kTwoOverPiFull);
    Pair<A, double> p0 = exact_product(t.x, t.two_over_pi[0]);
    Pair<A, double> p1 = exact_product(t.x, t.two_over_pi[1]);
    Pair<A, double> p2 = exact_product(t.x, t.two_over_pi[2]);
    Pair<A, double> s0 = exact_sum(without_turns(p0.high), without_turns(p0.low));
    Pair<A, double> s1 = exact_sum(s0.high, without_turns(p1.high));
    F64<A> middle_whole = round_even(s1.high);
    // The rest is small; it may cancel down to 2^-62.
    Pair<A, double> t0 = exact_sum(s0.low, s1.low);
    Pair<A, double> t1 = exact_sum(p1.low, p2.high);
    Pair<A, double> t2 = exact_sum(t0.high, t1.high);
    Pair<A, double> t3 = exact_sum(s1.high - middle_whole, t2.high);
    F64<A> last = t0.low + t1.low + t2.low + p2.low + t.x * t.two_over_pi[3];
    Pair<A, double> rest = sum_of_ordered(t3.high, t3.low + last);
    Pair<A, double> r = exact_product(rest.high, x.with(half_pi));
    F64<A> r_low = fma(rest.low, half_pi, fma(rest.high, half_pi_low, r.low));
    return {last_bits(middle_whole), sum_of_ordered(r.high, r_low)};
  }
}

template <class A>
struct SineAndCosine {
  F64<A> sine, cosine;
};
template <Precision precision, class A>
SineAndCosine<A> of_rest(const Pair<A, double>& rest) {
  const F64<A>& r = rest.high;
  F64<A> z = r * r;
  if constexpr (precision == Precision::single) {
    return {.sine = fma(r * z, polynomial(z, kSinShort), r),
            .cosine = fma(z * z, polynomial(z, kCosShort), fma(z, -0.5, 1.0))};
  } else {
    F64<A> half = z * 0.5;
    Pair<A, double> first = sum_of_ordered(z.with(1), negate(half));
    F64<A> second = fma(z * z, polynomial(z, kCosF64), first.low - r * rest.low);
    return {.sine = r + fma(r * z, polynomial(z, kSinF64), rest.low),
            .cosine = first.high + second};
  }
}

template <class A>
Truth<A> is_odd(Number<A, int64_t> whole) {
  return real((whole << 63) | Format<double>::kOne) < 0.0;
}

template <Precision precision, class A>
F64<A> sin_of(Quarters<A> angle) {
  SineAndCosine<A> rest = of_rest<precision>(angle.rest);
  F64<A> size = select(is_odd(angle.whole), rest.cosine, rest.sine);
  return real(bits(size) ^ ((angle.whole & int64_t{2}) << 62));
}

// Where sin x = tan x = x; zeros keep their sign so.
template <class A>
Truth<A> is_tiny(F64<A> x) {
  return abs(x) < 0x1p-28;
}

template <Precision precision = Precision::full, class A>
F64<A> sin(F64<A> x) {
  return select(is_tiny(x), x, sin_of<precision>(quarters<precision>(x)));
}

template <Precision precision = Precision::full, class A>
F64<A> cos(F64<A> x) {
  Quarters<A> angle = quarters<precision>(x);
  return sin_of<precision>(Quarters<A>{angle.whole + int64_t{1}, angle.rest});
}

template <Precision precision = Precision::full, class A>
F64<A> tan(F64<A> x) {
  Quarters<A> angle = quarters<precision>(x);
  SineAndCosine<A> rest = of_rest<precision>(angle.rest);
  Truth<A> odd = is_odd(angle.whole);
  F64<A> ratio = select(odd, negate(rest.cosine), rest.sine) / select(odd, rest.sine, rest.cosine);
  return select(is_tiny(x), x, ratio);
}

}  // namespace hone::math
