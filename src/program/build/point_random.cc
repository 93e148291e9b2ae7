#include "program/build/point_builder.h"

// Threefry with 20 rounds, as rng_bits has it: of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (2011).

namespace hone {

tile::Scalar PointBuilder::rng_bits(const Point& point) {
  constexpr int kRounds = 20;
  const DType word = point.type.dtype();
  const bool narrow = word == DType::u32;
  constexpr int kNarrow[] = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr int kWide[] = {16, 42, 12, 31, 16, 32, 24, 21};
  const std::span<const int> rotations = narrow ? kNarrow : kWide;
  const int64_t parity = narrow ? 0x1bd11bda : 0x1bd11bdaa9fc1a22;

  auto add = [&](Scalar a, Scalar b) { return tiles_.compute(Opcode::add, {a, b}); };
  auto exclusive = [&](Scalar a, Scalar b) { return tiles_.compute(Opcode::xor_, {a, b}); };
  auto shifted = [&](Opcode way, Scalar a, int by) {
    return tiles_.compute(way, {a, number(tiles_.dtype(a), int64_t{by})});
  };
  auto rotated = [&](Scalar a, int by) {
    return tiles_.compute(Opcode::or_, {shifted(Opcode::shift_left, a, by),
                                        shifted(Opcode::shift_right, a, bits(word) - by)});
  };
  // The two words of a 128-bit or 64-bit block that a u64 makes.
  auto block = [&](Scalar number) {
    if (!narrow) return std::pair(number, zero(word));
    return std::pair(tiles_.cast(number, word),
                     tiles_.cast(shifted(Opcode::shift_right, number, 32), word));
  };

  IndexExpr element = 0;  // its place in row-major order
  for (int i = 0; i < point.type.rank(); ++i)
    element = element * point.type.dim(i) + point.iters[static_cast<size_t>(i)];
  const auto [key0, key1] = block(operand(point, 0));
  const Scalar counter = add(operand(point, 1), position(DType::u64, floordiv(element, 2)));
  const auto [counter0, counter1] = block(counter);
  const Scalar keys[] = {key0, key1, exclusive(number(word, parity), exclusive(key0, key1))};
  Scalar x = add(counter0, keys[0]), y = add(counter1, keys[1]);
  for (int round = 0; round < kRounds; ++round) {
    x = add(x, y);
    y = exclusive(rotated(y, rotations[static_cast<size_t>(round % 8)]), x);
    if (round % 4 != 3) continue;
    const int injection = round / 4 + 1;
    x = add(x, keys[injection % 3]);
    y = add(y, add(keys[(injection + 1) % 3], number(word, int64_t{injection})));
  }
  const Scalar is_second = compare("ne", position(DType::i64, mod(element, 2)), zero(DType::i64));
  return tiles_.compute(Opcode::select, {is_second, y, x});
}

}  // namespace hone
