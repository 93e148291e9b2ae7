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
    std::optional<Scalar> half;
    if (numbers.are_rounded)
      half =
          b_.compute(Opcode::select, {compared("ge", exponent, kLargest), word(0), word(0x8000)});
    return parts(number, numbers.parts, half, compared("eq", exponent, kExponent));
  }
  std::vector<Scalar> parts_of_tame(Scalar number, const MatrixNumbers& numbers) {
    std::optional<Scalar> half;
    if (numbers.are_rounded) half = word(0x8000);
    return parts(b_.compute(Opcode::mul, {number, b_.real(DType::f32, kTamed)}), numbers.parts,
                 half, {});
  }

  Scalar is_wild(Scalar number) {
    constexpr int64_t kBias = 127, kMantissa = 23;
    constexpr auto bits_of = [](int64_t exponent) { return (exponent + kBias) << kMantissa; };
    constexpr int64_t kLeast = bits_of(kTameExponents[0]), kEnd = bits_of(kTameExponents[1]);
    const Scalar size = b_.compute(Opcode::and_, {as(number, DType::u32), word(0x7fffffff)});
    // Smaller numbers wrap.
    const Scalar above = b_.compute(Opcode::sub, {size, word(kLeast)});
    const Scalar wild =
        b_.compute(Opcode::and_, {compared("ge", above, kEnd - kLeast), compared("ne", size, 0)});
    return b_.cast(wild, DType::u32);
  }

  Scalar pair(Scalar first, Scalar second) {
    const Scalar low = b_.compute(Opcode::shift_right, {first, word(16)});
    return b_.compute(Opcode::or_, {low, second});
  }

 private:
  // `half` is added to bits before they are cut. `special`: the number is an infinity or NaN.
  std::vector<Scalar> parts(Scalar number, int64_t count, std::optional<Scalar> half,
                            std::optional<Scalar> special) {
    std::vector<Scalar> all;
    for (int64_t part = 0; part < count; ++part) {
      Scalar bits = as(number, DType::u32);
      if (half) bits = b_.compute(Opcode::add, {bits, *half});
      bits = b_.compute(Opcode::and_, {bits, word(0xffff0000)});
      if (part + 1 < count) {
        if (special) bits = b_.compute(Opcode::select, {*special, instead(part, bits), bits});
        number = b_.compute(Opcode::sub, {number, as(bits, DType::f32)});
      }
      all.push_back(bits);
    }
    return all;
  }

  Scalar instead(int64_t part, Scalar bits) {
    if (part > 0) return word(0);
    const Scalar sign = b_.compute(Opcode::and_, {bits, word(0x80000000)});
    return b_.compute(Opcode::or_, {sign, word(0x3f800000)});
  }

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

Scalar is_wild(TileBuilder& tiles, Scalar number) { return Splitter(tiles).is_wild(number); }

std::vector<Scalar> split_tame(TileBuilder& tiles, Scalar number, const MatrixNumbers& numbers) {
  std::vector<Scalar> parts;
  for (Scalar bits : Splitter(tiles).parts_of_tame(number, numbers)) {
    const Scalar part = tiles.compute(Opcode::bitcast, {bits}, {{"dtype", DType::f32}});
    parts.push_back(tiles.cast(part, DType::bf16));
  }
  return parts;
}

}  // namespace hone
