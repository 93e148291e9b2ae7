#include <cmath>
#include <numbers>

#include "base/text.h"
#include "front/hlo/importer.h"

// Functions of CHLO that hone has no op for, spelled out in f64.

namespace hone::hlo {
namespace {

// Lanczos' approximation of the gamma function, for g = 7 and 9 terms.
constexpr double kLanczos = 7;
constexpr double kFirst = 0.99999999999980993227684700473478;
constexpr double kTerms[] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

Value real_operand(Node& n) {
  n.need(1);
  const DType type = n.in().dtype();
  if (!is_real(type) || is_storage_only(type))
    n.refuse(bad_input("of {} is not defined", name(type)));
  return cast(n.in(), DType::f64);
}

// The sum of the terms at z = x - 1, and its derivative.
struct Series {
  Value sum;
  Value derivative;
};
Series series(Value z) {
  Series made = {z * 0.0 + kFirst, z * 0.0};
  double place = 1;
  for (const double term : kTerms) {
    const Value shifted = z + place++;
    const Value part = term / shifted;
    made.sum = made.sum + part;
    made.derivative = made.derivative - part / shifted;
  }
  return made;
}

// With the sign of a fraction: x less the nearest whole number. Sines of large numbers stay exact.
Value fraction(Value x) { return x - unary(Opcode::round, x); }

Value polynomial(Value x, std::span<const double> factors) {
  Value made = x * 0.0 + factors[0];
  for (const double factor : factors.subspan(1)) made = made * x + factor;
  return made;
}

}  // namespace

namespace {

Value lgamma(Value x) {
  const Value reflects = compare("lt", x, 0.5);
  const Value z = select(reflects, -x, x - 1.0);
  const Value t = z + (kLanczos + 0.5);
  const double half_log_of_two_pi = 0.5 * std::log(2 * std::numbers::pi);
  const Value right = (z + 0.5) * log(t) - t + half_log_of_two_pi + log(series(z).sum);
  const Value sine = unary(Opcode::abs, unary(Opcode::sin, fraction(x) * std::numbers::pi));
  const Value left = (std::log(std::numbers::pi) - log(sine)) - right;
  const Value infinite = x * 0.0 + std::numeric_limits<double>::infinity();
  Value made = select(reflects, left, right);
  made = select(unary(Opcode::is_inf, x), unary(Opcode::abs, x), made);
  const Value pole =
      binary(Opcode::and_, compare("le", x, 0.0), compare("eq", unary(Opcode::floor, x), x));
  const Value finite_pole = binary(Opcode::and_, pole, unary(Opcode::is_finite, x));
  return select(finite_pole, infinite, made);
}

Value digamma(Value x) {
  const Value reflects = compare("lt", x, 0.5);
  const Value z = select(reflects, -x, x - 1.0);
  const Value t = z + (kLanczos + 0.5);
  const Series terms = series(z);
  const Value right = log(t) + terms.derivative / terms.sum - kLanczos / t;
  const Value left = right - std::numbers::pi / unary(Opcode::tan, fraction(x) * std::numbers::pi);
  const Value pole =
      binary(Opcode::and_, compare("le", x, 0.0), compare("eq", unary(Opcode::floor, x), x));
  const Value nan = x * 0.0 + std::numeric_limits<double>::quiet_NaN();
  Value made = select(pole, nan, select(reflects, left, right));
  // At +-0 it is infinite, with the other sign.
  return select(compare("eq", x, 0.0), -1.0 / x, made);
}

Value is_whole(Value x) { return compare("eq", unary(Opcode::floor, x), x); }
Value spread_nan(Value x) { return x * 0.0 + std::numeric_limits<double>::quiet_NaN(); }
Value power_of(Value x, Value exponent) { return binary(Opcode::pow, x, exponent); }

// The sum of (q + k)^-x over all k >= 0: the first terms, and the rest by the formula of Euler and
// Maclaurin.
Value hurwitz_zeta(Value x, Value q) {
  constexpr int kTerms = 10;
  // (2 j)! / B_2j, with the numbers of Bernoulli.
  constexpr double kBernoulli[] = {12,
                                   -720,
                                   30240,
                                   -1209600,
                                   47900160,
                                   -1307674368000.0 / 691,
                                   74724249600,
                                   -10670622842880000.0 / 3617,
                                   5109094217170944000.0 / 43867,
                                   -802857662698291200000.0 / 174611,
                                   14101100039391805440000.0 / 77683,
                                   -1693824136731743669452800000.0 / 236364091};
  Value sum = power_of(q, -x);
  Value last = q;
  for (int k = 1; k < kTerms; ++k) {
    last = q + static_cast<double>(k);
    sum = sum + power_of(last, -x);
  }
  const Value term = power_of(last, -x);
  sum = sum + term * last / (x - 1.0) - term * 0.5;
  Value rising = x;  // x (x + 1) ... over (2 j)! / B_2j
  Value inverse = term / last;
  double next = 1;
  for (const double divisor : kBernoulli) {
    sum = sum + rising * inverse / divisor;
    rising = rising * (x + next) * (x + (next + 1));
    inverse = inverse / (last * last);
    next += 2;
  }
  const Value infinite = x * 0.0 + std::numeric_limits<double>::infinity();
  const Value is_left = compare("le", q, 0.0);
  // A pole, if x is even; a negative base has no real power by a fraction.
  const Value is_even = is_whole(x * 0.5);
  const Value at_pole = binary(Opcode::and_, is_left, is_whole(q));
  sum = select(binary(Opcode::and_, is_left, unary(Opcode::not_, is_whole(x))), spread_nan(x), sum);
  sum = select(at_pole, select(is_even, infinite, spread_nan(x)), sum);
  sum = select(compare("lt", x, 1.0), spread_nan(x), sum);
  sum = select(compare("eq", x, 1.0), infinite, sum);
  return select(binary(Opcode::or_, unary(Opcode::is_nan, x), unary(Opcode::is_nan, q)), x + q,
                sum);
}

std::pair<Value, Value> real_operands(Node& n) {
  n.need(2);
  const DType type = n.in().dtype();
  if (!is_real(type) || is_storage_only(type))
    n.refuse(bad_input("of {} is not defined", name(type)));
  return {cast(n.in(0), DType::f64), cast(n.in(1), DType::f64)};
}

}  // namespace

std::vector<Value> map_lgamma(Node& n) { return {cast(lgamma(real_operand(n)), n.in().dtype())}; }
std::vector<Value> map_digamma(Node& n) { return {cast(digamma(real_operand(n)), n.in().dtype())}; }

std::vector<Value> map_zeta(Node& n) {
  const auto [x, q] = real_operands(n);
  return {cast(hurwitz_zeta(x, q), n.in().dtype())};
}

// The derivative of digamma, taken so often.
std::vector<Value> map_polygamma(Node& n) {
  const auto [order, x] = real_operands(n);
  const Value is_odd = unary(Opcode::not_, is_whole(order * 0.5));
  const Value size = exp(lgamma(order + 1.0)) * hurwitz_zeta(order + 1.0, x);
  Value made = select(is_odd, size, -size);
  made = select(compare("eq", order, 0.0), digamma(x), made);
  const Value is_order = binary(Opcode::and_, is_whole(order), compare("ge", order, 0.0));
  return {cast(select(is_order, made, spread_nan(x)), n.in().dtype())};
}

// exp(-|x|) times the modified Bessel function of order 1: its power series, whose terms have one
// sign, and from 20 on its asymptotic series. There a step of either is below a unit of f64.
std::vector<Value> map_bessel_i1e(Node& n) {
  constexpr double kFar = 20;
  constexpr int kPowers = 64;
  constexpr int kInverses = 30;
  const Value x = real_operand(n);
  const Value size = unary(Opcode::abs, x);
  const Value half = minimum(size, kFar) * 0.5;
  const Value square = half * half;
  Value near = square * 0.0 + 1.0;
  for (int k = kPowers; k > 0; --k) near = near * square / (static_cast<double>(k) * (k + 1)) + 1.0;
  near = near * half * exp(-2.0 * half);
  const Value inverse = 1.0 / maximum(size, kFar);
  Value far = inverse * 0.0 + 1.0;
  for (int k = kInverses; k > 0; --k) {
    const double odd = 2.0 * k - 1;
    far = 1.0 - far * inverse * ((4 - odd * odd) / (8.0 * k));
  }
  far = far * sqrt(inverse / (2 * std::numbers::pi));
  const Value made = select(compare("lt", size, kFar), near, far);
  const Value signed_made = select(compare("lt", x, 0.0), -made, made);
  // NaN stays, and so do zeros.
  const Value is_odd = binary(Opcode::or_, compare("ne", x, x), compare("eq", x, 0.0));
  return {cast(select(is_odd, x, signed_made), n.in().dtype())};
}

// erfc(x) exp(x^2) (1 + 2 x) as a series of Chebyshev's polynomials of t = (x - 3.75) / (x + 3.75),
// for x of at least 0: 24 terms give all digits of f64. The coefficients are sums over 64 nodes, of
// numbers with 40 digits.
constexpr double kScaledErfc[] = {
    1.1775789345674017541,      -0.0045900545806464773309,  -0.084249133366517915584,
    0.059209939998191890498,    -0.026658668435305752277,   0.0090749976707052650939,
    -0.0024131635404176081909,  0.00049077583652580863229,  -0.000069169733025012063671,
    4.1390279860730101675e-6,   7.7403830661984906686e-7,   -2.1886401049234395661e-7,
    1.0764999465670910377e-8,   4.5219598112182868979e-9,   -7.7544002088313511065e-10,
    -6.3180883408866844944e-11, 2.8687950109306698981e-11,  1.945586854577734723e-13,
    -9.6546967484334389059e-13, 3.2525481481487398415e-14,  3.3478119482868053878e-14,
    -1.8645628804193131015e-15, -1.2507950530688647085e-15, 7.418235256624043463e-17};

std::vector<Value> map_erfc(Node& n) {
  constexpr double kMiddle = 3.75;
  constexpr double kVanishes = 40;  // erfc is less than the least number of f64
  const Value x = real_operand(n);
  const Value size = minimum(unary(Opcode::abs, x), kVanishes);
  const Value t = (size - kMiddle) / (size + kMiddle);
  Value one = t * 0.0, two = one;  // of Clenshaw's sum
  for (size_t k = std::size(kScaledErfc); --k > 0;) {
    const Value next = 2.0 * t * one - two + kScaledErfc[k];
    two = one;
    one = next;
  }
  const Value scaled = (t * one - two + kScaledErfc[0]) / (1.0 + 2.0 * size);
  // The square of a number of 24 bits is exact; the rest of x^2 is small.
  const Value high = cast(cast(size, DType::f32), DType::f64);
  const Value square = exp(-(high * high)) * exp(-((size - high) * (size + high)));
  const Value right = scaled * square;
  return {cast(select(compare("lt", x, 0.0), 2.0 - right, right), n.in().dtype())};
}

// Giles' polynomials give seven digits; steps of Newton's, by the derivative of erf, the rest.
std::vector<Value> map_erf_inv(Node& n) {
  constexpr double kMiddle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTails[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                               -0.00367342844,  0.00573950773,  -0.0076224613,
                               0.00943887047,   1.00167406,     2.83297682};
  const Value y = real_operand(n);
  const Value w = -unary(Opcode::log1p, -(y * y));
  const Value in_tail = compare("ge", w, 5.0);
  const Value middle = polynomial(w - 2.5, kMiddle);
  const Value tail = polynomial(sqrt(w) - 3.0, kTails);
  Value x = select(in_tail, tail, middle) * y;
  for (int step = 0; step < 2; ++step) {
    const Value slope = exp(-(x * x)) * (2 / std::sqrt(std::numbers::pi));
    x = x - (unary(Opcode::erf, x) - y) / slope;
  }
  const Value size = unary(Opcode::abs, y);
  const Value infinite = y * std::numeric_limits<double>::infinity();
  const Value nan = y * 0.0 + std::numeric_limits<double>::quiet_NaN();
  x = select(compare("eq", size, 1.0), infinite, x);
  x = select(compare("eq", y, 0.0), y, x);
  return {cast(select(compare("le", size, 1.0), x, nan), n.in().dtype())};
}

}  // namespace hone::hlo
