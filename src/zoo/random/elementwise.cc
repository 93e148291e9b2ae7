#include <algorithm>

#include "zoo/random/generator.h"

// Recipes of leaves, elementwise ops and conversions.

namespace hone {
namespace {

// Any operand does; `limit` is what its size is brought to, `result` bounds the result.
template <int limit, int result>
void bounded(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.within(g.pick(dtype), limit);
  g.keep(unary(opcode, x), result);
}

void like_operand(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick(dtype);
  g.keep(unary(opcode, x), g.bound(x) + 1);
}

// log, log1p, rsqrt, sqrt: away from the pole.
void of_positive(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.positive(g.within(g.pick(dtype), 8), 0.5);
  g.keep(unary(opcode, x), 4);
}

// asin, acos, atanh: inside of (-1, 1).
void of_unit(Generator& g, Opcode opcode, DType dtype) {
  g.keep(unary(opcode, g.within(g.pick(dtype), 0.75)), 4);
}

void acosh(Generator& g, Opcode opcode, DType dtype) {
  g.keep(unary(opcode, g.positive(g.within(g.pick(dtype), 8), 1.5)), 4);
}

void sum(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick(dtype);
  Value y = g.pick(dtype, x.dims());
  g.keep(binary(opcode, x, y), g.bound(x) + g.bound(y));
}

void product(Generator& g, Opcode, DType dtype) {
  Value x = g.within(g.pick(dtype), 8);
  Value y = g.within(g.pick(dtype, x.dims()), 8);
  g.keep(x * y, g.bound(x) * g.bound(y));
}

void quotient(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick(dtype);
  Value y = g.pick(dtype, x.dims());
  if (is_real(dtype)) y = g.positive(g.within(y, 8), 0.5);
  g.keep(binary(opcode, x, y), 2 * g.bound(x));
}

void power_of(Generator& g, Opcode opcode, DType dtype) {
  Value x = g.pick(dtype);
  Value y = g.pick(dtype, x.dims());
  if (is_real(dtype)) {
    x = g.positive(g.within(x, 2), 0.5);
    y = g.within(y, 2);
  }
  g.keep(binary(opcode, x, y), 8);
}

void compared(Generator& g, Opcode, DType dtype) {
  static constexpr std::string_view directions[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  Value x = g.pick(dtype);
  g.keep(compare(g.rng().pick(directions), x, g.pick(dtype, x.dims())), 1);
}

// select's principal operand is the predicate; the values may be of any type.
void selected(Generator& g, Opcode, DType dtype) {
  Value p = g.pick(dtype);
  DType type = static_cast<DType>(g.number(0, kDTypeCount - 1));
  Value x = g.pick(type, p.dims());
  Value y = g.pick(type, p.dims());
  g.keep(select(p, x, y), std::max(g.bound(x), g.bound(y)));
}

void cast_to_any(Generator& g, Opcode, DType dtype) {
  DType to = static_cast<DType>(g.number(0, kDTypeCount - 1));
  // f8e8m0 forgets the sign.
  const bool jumps = !is_real(to) || to == DType::f8e8m0;
  if (g.options().continuous && is_real(dtype) && jumps) to = DType::f32;
  Value x = g.small(g.pick(dtype));
  Value y = x.builder().op(Opcode::cast, {x}, {{"dtype", to}});
  g.keep(y, is_real(dtype) ? g.bound(x) : 16);
}

// NaN has any bits, so there is none in what becomes bits.
Value without_nan(Generator& g, Value x) {
  if (!g.options().specials.any() || !is_real(x.dtype())) return x;
  const Value real = is_storage_only(x.dtype()) ? cast(x, DType::f32) : x;
  const Value zero = broadcast_to(g.builder().scalar(real.dtype(), 0), x.dims());
  return cast(select(unary(Opcode::is_nan, real), zero, real), x.dtype());
}

// To an integer of equal width: arbitrary bits make bad reals. A real comes back from its own bits.
void bitcast_bits(Generator& g, Opcode, DType dtype) {
  Value x = without_nan(g, g.pick(dtype));
  std::vector<DType> same;
  for (int i = 0; i < kDTypeCount; ++i) {
    DType to = static_cast<DType>(i);
    if (is_integer(to) && bits(to) == bits(dtype)) same.push_back(to);
  }
  auto bitcast = [](Value v, DType to) {
    return v.builder().op(Opcode::bitcast, {v}, {{"dtype", to}});
  };
  Value y = bitcast(x, g.rng().pick(same));
  g.keep(y, 1);
  if (is_real(dtype) && g.rng().chance(0.5)) g.keep_like(bitcast(y, dtype), x);
}

void iota_of(Generator& g, Opcode, DType dtype) {
  Dims dims = g.shape(1, 3);
  int64_t axis = g.number(0, static_cast<int64_t>(dims.size()) - 1);
  g.keep(iota(g.builder(), dtype, dims, static_cast<int>(axis)), 8);
}

void rng_bits_of(Generator& g, Opcode opcode, DType dtype) {
  Value key = g.pick(dtype, {}), counter = g.pick(dtype, {});
  DType result = g.rng().chance(0.5) ? DType::u32 : DType::u64;
  g.keep(g.builder().op(opcode, {key, counter}, {{"dtype", result}, {"dims", g.shape(0, 3)}}), 1);
}

constexpr Recipe kElementwiseRecipes[] = {
    {Opcode::iota, iota_of},
    {Opcode::rng_bits, rng_bits_of},
    {Opcode::neg, like_operand},
    {Opcode::abs, like_operand},
    {Opcode::sign, bounded<64, 1>, kJumps},
    {Opcode::floor, like_operand, kJumps},
    {Opcode::ceil, like_operand, kJumps},
    {Opcode::round, like_operand, kJumps},
    {Opcode::trunc, like_operand, kJumps},
    {Opcode::log, of_positive},
    {Opcode::log1p, of_positive},
    {Opcode::sqrt, of_positive},
    {Opcode::rsqrt, of_positive},
    {Opcode::sin, bounded<64, 1>},
    {Opcode::cos, bounded<64, 1>},
    {Opcode::tan, bounded<1, 2>},
    {Opcode::asin, of_unit},
    {Opcode::acos, of_unit},
    {Opcode::atan, bounded<64, 2>},
    {Opcode::sinh, bounded<2, 4>},
    {Opcode::cosh, bounded<2, 4>},
    {Opcode::tanh, bounded<64, 1>},
    {Opcode::asinh, bounded<64, 8>},
    {Opcode::acosh, acosh},
    {Opcode::atanh, of_unit},
    {Opcode::logistic, bounded<64, 1>},
    {Opcode::erf, bounded<64, 1>},
    {Opcode::is_finite, bounded<64, 1>, kJumps},
    {Opcode::is_nan, bounded<64, 1>, kJumps},
    {Opcode::is_inf, bounded<64, 1>, kJumps},
    {Opcode::not_, like_operand},
    {Opcode::popcount, like_operand},
    {Opcode::add, sum},
    {Opcode::sub, sum},
    {Opcode::mul, product},
    {Opcode::div, quotient},
    {Opcode::rem, quotient, kJumps},
    {Opcode::pow, power_of},
    {Opcode::max, sum},
    {Opcode::min, sum},
    {Opcode::atan2, sum, kJumps},
    {Opcode::and_, sum},
    {Opcode::or_, sum},
    {Opcode::xor_, sum},
    {Opcode::shift_left, sum},
    {Opcode::shift_right, sum},
    {Opcode::compare, compared, kJumps},
    {Opcode::select, selected},
    {Opcode::cast, cast_to_any},
    {Opcode::bitcast, bitcast_bits, kJumps},
};

}  // namespace

std::span<const Recipe> elementwise_recipes() { return kElementwiseRecipes; }

const Recipe kUnaryRecipe = {Opcode::exp, bounded<2, 8>};

}  // namespace hone
