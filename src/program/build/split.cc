#include "program/build/split.h"

#include <optional>
#include <string>

namespace hone {
namespace {

using tile::Scalar;

class Splitter {
 public:
  explicit Splitter(TileBuilder& tiles) : b_(tiles) {}

  // The bits of each part, whose low half is zero.
  std::vector<Scalar> parts(Scalar number, const MatrixNumbers& numbers) {
    const Scalar exponent = b_.compute(Opcode::and_, {as(number, DType::u32), word(kExponent)});
    const Scalar special = compared("eq", exponent, kExponent);
    std::optional<Scalar> half;
    if (numbers.are_rounded)
      half =
          b_.compute(Opcode::select, {compared("ge", exponent, kLargest), word(0), word(0x8000)});
    std::vector<Scalar> all;
    for (int64_t part = 0; part < numbers.parts; ++part) {
      Scalar bits = as(number, DType::u32);
      if (half) bits = b_.compute(Opcode::add, {bits, *half});
      bits = b_.compute(Opcode::and_, {bits, word(0xffff0000)});
      if (part + 1 < numbers.parts) {
        const Scalar sign = b_.compute(Opcode::and_, {bits, word(0x80000000)});
        const Scalar one = b_.compute(Opcode::or_, {sign, word(0x3f800000)});
        bits = b_.compute(Opcode::select, {special, part == 0 ? one : word(0), bits});
        number = b_.compute(Opcode::sub, {number, as(bits, DType::f32)});
      }
      all.push_back(bits);
    }
    return all;
  }

  Scalar pair(Scalar first, Scalar second) {
    const Scalar low = b_.compute(Opcode::shift_right, {first, word(16)});
    return b_.compute(Opcode::or_, {low, second});
  }

 private:
  // Handles infinities and NaN, and the largest numbers, which would become infinite if rounded.
  static constexpr int64_t kExponent = 0x7f800000, kLargest = 0x7f000000;

  Scalar compared(const std::string& direction, Scalar bits, int64_t value) {
    return b_.compute(Opcode::compare, {bits, word(value)}, {{"direction", direction}});
  }
  Scalar as(Scalar number, DType dtype) {
    return b_.compute(Opcode::bitcast, {number}, {{"dtype", dtype}});
  }
  Scalar word(int64_t value) { return b_.integer(DType::u32, value); }

  TileBuilder& b_;
};

}  // namespace

std::vector<Scalar> split_pair(TileBuilder& tiles, Scalar first, Scalar second,
                               const MatrixNumbers& numbers) {
  Splitter splitter(tiles);
  const std::vector<Scalar> low = splitter.parts(first, numbers);
  const std::vector<Scalar> high = splitter.parts(second, numbers);
  std::vector<Scalar> words;
  for (size_t part = 0; part < low.size(); ++part)
    words.push_back(splitter.pair(low[part], high[part]));
  return words;
}

std::vector<Scalar> split_number(TileBuilder& tiles, Scalar number, const MatrixNumbers& numbers) {
  std::vector<Scalar> parts;
  for (Scalar bits : Splitter(tiles).parts(number, numbers)) {
    const Scalar part = tiles.compute(Opcode::bitcast, {bits}, {{"dtype", DType::f32}});
    parts.push_back(tiles.cast(part, DType::bf16));
  }
  return parts;
}

}  // namespace hone
