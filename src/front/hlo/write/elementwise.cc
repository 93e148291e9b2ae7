#include <limits>
#include <numeric>

#include "front/hlo/write/emit.h"
#include "ir/functional.h"

// Ops that work element by element and are no single op of the languages, and random bits.

namespace hone::hlo {
namespace {

bool is_unsigned(DType type) { return kind(type) == DTypeKind::uint; }

Ids compared_with(Emit& e, std::string_view direction, uint32_t a, uint32_t b, DType type) {
  const std::string_view sort = is_real(type)                        ? "FLOAT"
                                : is_unsigned(type) || is_bool(type) ? "UNSIGNED"
                                                                     : "SIGNED";
  return {e.op("stablehlo.compare", {a, b}, e.result_type(),
               {{"comparison_direction", word_of(direction)}, {"compare_type", word_of(sort)}})};
}

}  // namespace

// The languages have neither the size nor the sign of unsigned numbers.
Ids write_abs(Emit& e) { return is_unsigned(e.dtype()) ? Ids{e.in(0)} : e.same("stablehlo.abs"); }

Ids write_sign(Emit& e) {
  if (!is_unsigned(e.dtype())) return e.same("stablehlo.sign");
  return e.spelled([&](Builder&, std::span<const Value> in) {
    return std::vector<Value>{cast(compare("ne", in[0], 0.0), in[0].dtype())};
  });
}

Ids write_trunc(Emit& e) {
  return e.spelled([](Builder&, std::span<const Value> in) {
    const Value is_negative = compare("lt", in[0], 0.0);
    return std::vector<Value>{
        select(is_negative, unary(Opcode::ceil, in[0]), unary(Opcode::floor, in[0]))};
  });
}

Ids write_atan(Emit& e) {
  if (!e.is_hlo()) return e.same("chlo.atan");
  return e.spelled([](Builder& b, std::span<const Value> in) {
    const Value one = broadcast(b.scalar(in[0].dtype(), 1), in[0].dims(), {});
    return std::vector<Value>{b.op(Opcode::atan2, {in[0], one})};
  });
}

Ids write_atan2(Emit& e) { return e.same("stablehlo.atan2"); }

Ids write_is_nan(Emit& e) { return compared_with(e, "NE", e.in(0), e.in(0), e.dtype()); }

Ids write_is_inf(Emit& e) {
  if (!e.is_hlo()) return e.same("chlo.is_inf");
  return e.spelled([](Builder&, std::span<const Value> in) {
    return std::vector<Value>{
        compare("eq", unary(Opcode::abs, in[0]), std::numeric_limits<double>::infinity())};
  });
}

Ids write_shift_right(Emit& e) {
  return e.same(is_unsigned(e.dtype()) ? "stablehlo.shift_right_logical"
                                       : "stablehlo.shift_right_arithmetic");
}

Ids write_compare(Emit& e) {
  constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"eq", "EQ"}, {"ne", "NE"}, {"lt", "LT"}, {"le", "LE"}, {"gt", "GT"}, {"ge", "GE"}};
  std::string_view direction;
  for (const auto& [ours, theirs] : kDirections)
    if (ours == e.op().word("direction")) direction = theirs;
  return compared_with(e, direction, e.in(0), e.in(1), e.dtype());
}

Ids write_select(Emit& e) { return e.same("stablehlo.select"); }
Ids write_cast(Emit& e) { return e.same("stablehlo.convert"); }
Ids write_bitcast(Emit& e) { return e.same("stablehlo.bitcast_convert"); }

namespace {

// Threefry's 20 rounds on two words, which are of the type of the keys.
struct Threefry {
  DType type;
  int64_t parity;
  int rotations[8];
};
constexpr Threefry kThreefry32 = {DType::u32, 0x1BD11BDA, {13, 15, 26, 6, 17, 29, 16, 24}};
constexpr Threefry kThreefry64 = {DType::u64, 0x1BD11BDAA9FC1A22, {16, 42, 12, 31, 16, 32, 24, 21}};

Value word_constant(Builder& b, DType type, int64_t number) {
  return b.constant(Tensor::from_integers(Type::scalar(type), Ints{number}));
}

std::pair<Value, Value> encrypted(const Threefry& cipher, Value key0, Value key1, Value x0,
                                  Value x1) {
  Builder& b = key0.builder();
  const auto number = [&](int64_t n) { return word_constant(b, cipher.type, n); };
  const Value keys[] = {
      key0, key1, binary(Opcode::xor_, binary(Opcode::xor_, key0, key1), number(cipher.parity))};
  x0 = x0 + keys[0];
  x1 = x1 + keys[1];
  for (int group = 0; group < 5; ++group) {
    for (int round = 0; round < 4; ++round) {
      const int turn = cipher.rotations[group % 2 * 4 + round];
      x0 = x0 + x1;
      const Value turned =
          binary(Opcode::or_, binary(Opcode::shift_left, x1, number(turn)),
                 binary(Opcode::shift_right, x1, number(bits(cipher.type) - turn)));
      x1 = binary(Opcode::xor_, turned, x0);
    }
    x0 = x0 + keys[(group + 1) % 3];
    x1 = x1 + keys[(group + 2) % 3] + number(group + 1);
  }
  return {x0, x1};
}

}  // namespace

Ids write_rng_bits(Emit& e) {
  const Dims dims = e.op().dims("dims");
  const DType type = e.op().dtype("dtype");
  return e.spelled([&](Builder& b, std::span<const Value> in) {
    // The place of each element, row-major.
    Value place = broadcast(word_constant(b, DType::u64, 0), dims, {});
    Dim stride = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
      const Value step = cast(size_value(b, stride), DType::u64);
      place = place + iota(b, DType::u64, dims, static_cast<int>(axis)) * step;
      stride *= dims[axis];
    }
    const Value one = word_constant(b, DType::u64, 1);
    const Value block = in[1] + binary(Opcode::shift_right, place, one);
    const Value is_second = compare("eq", binary(Opcode::and_, place, one), one);
    const auto half = [&](Value x, bool high) {
      if (type == DType::u64) return high ? word_constant(b, DType::u64, 0) : x;
      const Value shift = word_constant(b, DType::u64, 32);
      return cast(high ? binary(Opcode::shift_right, x, shift) : x, DType::u32);
    };
    const auto [first, second] =
        encrypted(type == DType::u64 ? kThreefry64 : kThreefry32, half(in[0], false),
                  half(in[0], true), half(block, false), half(block, true));
    return std::vector<Value>{select(is_second, broadcast_to(second, dims), first)};
  });
}

}  // namespace hone::hlo
