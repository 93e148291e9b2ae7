#include "front/decoder/blocks.h"

#include <algorithm>

#include "base/text.h"
#include "ir/functional.h"

// The graphs of the formulas. blocks_plain.cc has them as plain code.

namespace hone {
namespace {

constexpr BlockLayout kLayouts[kBlockFormats] = {
    {"q4_0", 18, 32}, {"q4_1", 20, 32},   {"q5_0", 22, 32},   {"q5_1", 24, 32},
    {"q8_0", 34, 32}, {"q4_k", 144, 256}, {"q5_k", 176, 256}, {"q6_k", 210, 256},
};
constexpr std::string_view kRegion = "unpack_";

Value low_bits(Value x, double mask) { return binary(Opcode::and_, x, mask); }
Value shift_down(Value x, double bits) { return binary(Opcode::shift_right, x, bits); }
Value shift_up(Value x, double bits) { return binary(Opcode::shift_left, x, bits); }
Value bits_or(Value x, Value y) { return binary(Opcode::or_, x, y); }
Value as_f32(Value x) { return cast(x, DType::f32); }
Value pattern_as(Value x, DType dtype) {
  return x.builder().op(Opcode::bitcast, {x}, {{"dtype", dtype}});
}

// Other dims in the place of the last `count`.
Value with_last(Value x, int count, std::initializer_list<Dim> last) {
  Dims dims = x.dims();
  dims.resize(dims.size() - static_cast<size_t>(count));
  dims.insert(dims.end(), last);
  return reshape(x, dims);
}

// Low nibbles, then high ones, of the bytes along the last dim.
Value nibbles(Value x) { return concat({low_bits(x, 15), shift_down(x, 4)}, -1); }

// [..., n] -> [..., count, n]: part i is shifted down by i * step bits.
Value shifted_bits(Value x, int64_t count, double step) {
  Value by = iota(x.builder(), DType::u8, {count, 1}, 0);
  if (step != 1) by = by * step;
  const Dim size = x.dim(-1);
  return binary(Opcode::shift_right, with_last(x, 1, {1, size}), by);
}

// Bytes of blocks, u8[..., blocks, bytes], of which parts are cut.
struct Blocks {
  Value bytes;

  Value part(int64_t begin, int64_t size) const { return slice(bytes, -1, begin, begin + size); }

  // An f16 in two bytes: f32[..., blocks, 1].
  Value half(int64_t at) const {
    const Value low = cast(part(at, 1), DType::u16), high = cast(part(at + 1, 1), DType::u16);
    return as_f32(pattern_as(bits_or(low, shift_up(high, 8)), DType::f16));
  }

  // Bit j of four bytes for element j of 32, as 16 or 0.
  Value fifth_bits(int64_t at) const {
    const Value bits = transposed_bits(part(at, 4));
    return shift_up(low_bits(with_last(bits, 2, {32}), 1), 4);
  }

 private:
  // u8[..., 4] -> u8[..., 4, 8]: the byte shifted down by 0 to 7 bits.
  static Value transposed_bits(Value x) {
    const Value by = iota(x.builder(), DType::u8, {8}, 0);
    return binary(Opcode::shift_right, with_last(x, 1, {4, 1}), by);
  }
};

// ---- Blocks of 32 -------------------------------------------------------------------------------

// d (q - middle), or d q + m, of numbers of 4 bits that begin behind what is before them.
Value q4_0(const Blocks& b) { return b.half(0) * (as_f32(nibbles(b.part(2, 16))) - 8); }
Value q4_1(const Blocks& b) { return b.half(0) * as_f32(nibbles(b.part(4, 16))) + b.half(2); }
Value q5_0(const Blocks& b) {
  return b.half(0) * (as_f32(bits_or(nibbles(b.part(6, 16)), b.fifth_bits(2))) - 16);
}
Value q5_1(const Blocks& b) {
  return b.half(0) * as_f32(bits_or(nibbles(b.part(8, 16)), b.fifth_bits(4))) + b.half(2);
}
Value q8_0(const Blocks& b) { return b.half(0) * as_f32(pattern_as(b.part(2, 32), DType::i8)); }

// ---- Blocks of 256 ------------------------------------------------------------------------------

// The eight scales and the eight minima of q4_k and q5_k, of 6 bits each, in 12 bytes.
struct SixBits {
  Value scales;  // u8[..., blocks, 8]
  Value minima;
};
SixBits six_bits(const Blocks& b) {
  const Value first = b.part(4, 4), second = b.part(8, 4), third = b.part(12, 4);
  const auto rest = [](Value low, Value high) {
    return bits_or(low, shift_up(shift_down(high, 6), 4));
  };
  return {concat({low_bits(first, 63), rest(low_bits(third, 15), first)}, -1),
          concat({low_bits(second, 63), rest(shift_down(third, 4), second)}, -1)};
}

// 128 bytes as numbers of 4 bits in eight parts of 32: [..., blocks, 8, 32].
Value eight_parts(Value bytes) {
  return with_last(nibbles(with_last(bytes, 1, {4, 32})), 2, {8, 32});
}

// d scale q - dmin minimum, by parts of 32.
Value scaled_k(const Blocks& b, Value q) {
  const SixBits six = six_bits(b);
  const Value scales = with_last(b.half(0) * as_f32(six.scales), 1, {8, 1});
  const Value minima = with_last(b.half(2) * as_f32(six.minima), 1, {8, 1});
  return scales * as_f32(q) - minima;
}

Value q4_k(const Blocks& b) { return scaled_k(b, eight_parts(b.part(16, 128))); }
Value q5_k(const Blocks& b) {
  const Value fifth = shift_up(low_bits(shifted_bits(b.part(16, 32), 8, 1), 1), 4);
  return scaled_k(b, bits_or(eight_parts(b.part(48, 128)), fifth));
}
Value q6_k(const Blocks& b) {
  const Value low = nibbles(with_last(b.part(0, 128), 1, {2, 64}));
  const Value two = low_bits(shifted_bits(with_last(b.part(128, 64), 1, {2, 32}), 4, 2), 3);
  const Value q = bits_or(low, shift_up(with_last(two, 2, {128}), 4));
  const Value scales = b.half(208) * as_f32(pattern_as(b.part(192, 16), DType::i8));
  return with_last(scales, 1, {16, 1}) * (as_f32(with_last(q, 2, {16, 16})) - 32);
}

constexpr Value (*kFormulas[kBlockFormats])(const Blocks&) = {q4_0, q4_1, q5_0, q5_1,
                                                              q8_0, q4_k, q5_k, q6_k};

}  // namespace

const BlockLayout& layout_of(BlockFormat format) { return kLayouts[static_cast<size_t>(format)]; }

Value unpacked(Value blocks, BlockFormat format) {
  const BlockLayout& layout = layout_of(format);
  const Dim size = blocks.dim(-1);
  if (!blocks.builder().ok()) return blocks;
  HONE_CHECK(size.is_static() && size.value() % layout.bytes == 0, "{} bytes are no blocks",
             size.to_string());
  const int64_t count = size.value() / layout.bytes;
  const Value split = with_last(blocks, 1, {count, layout.bytes});
  const Value numbers = kFormulas[static_cast<size_t>(format)](Blocks{split});
  const int rank = numbers.rank() - blocks.rank() + 1;
  return with_last(numbers, rank, {count * layout.elements});
}

Value call_of_unpack(Value blocks, BlockFormat format) {
  Builder& b = blocks.builder();
  if (!b.ok()) return blocks;
  const Type type = blocks.type();
  const GraphRef region = b.region(fmt::format("{}{}", kRegion, layout_of(format).name), {&type, 1},
                                   [&](Builder&, std::span<const Value> in) {
                                     return std::vector<Value>{unpacked(in[0], format)};
                                   });
  const std::vector<Value> results = b.ops(Opcode::call, {&blocks, 1}, {}, {region});
  return results.empty() ? blocks : results[0];
}

std::optional<BlockFormat> unpacked_by(const Graph& region) {
  std::string_view name = region.name();
  if (!consume_prefix(name, kRegion) || region.inputs().size() != 1) return std::nullopt;
  const auto* const found = std::ranges::find(kLayouts, name, &BlockLayout::name);
  if (found == std::end(kLayouts)) return std::nullopt;
  const auto format = static_cast<BlockFormat>(found - kLayouts);
  const Type type = region.type(region.inputs()[0]);
  if (type.dtype() != DType::u8 || type.rank() == 0 || !type.dim(type.rank() - 1).is_static() ||
      type.dim(type.rank() - 1).value() % found->bytes != 0)
    return std::nullopt;
  // A region that somebody else calls so is another one.
  Builder b(region.name());
  Result<Graph> own = b.finish({unpacked(b.parameter("", type), format)});
  if (!own.ok() || structural_hash(*own) != structural_hash(region)) return std::nullopt;
  return format;
}

}  // namespace hone
