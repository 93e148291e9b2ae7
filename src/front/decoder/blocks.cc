#include "front/decoder/blocks.h"

#include "ir/functional.h"

// The formulas, without a choice between parts: bits are shifted by what depends on their place. So
// a product that unpacks its weights has a straight line of code for each number.

namespace hone {
namespace {

constexpr BlockLayout kLayouts[kBlockFormats] = {
    {"q4_0", 18, 32}, {"q4_1", 20, 32},   {"q5_0", 22, 32},   {"q5_1", 24, 32},
    {"q8_0", 34, 32}, {"q4_k", 144, 256}, {"q5_k", 176, 256}, {"q6_k", 210, 256},
};

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

// x shifted down by `step` bits for each index of the dim of size 1 that has `behind` dims behind
// it: as many times as `count` says.
Value shifted_along(Value x, int behind, int64_t count, double step) {
  Dims dims(static_cast<size_t>(behind) + 1, 1);
  dims[0] = count;
  return binary(Opcode::shift_right, x, iota(x.builder(), DType::u8, dims, 0) * step);
}

// Bytes of blocks, u8[..., blocks, bytes], of which parts are cut.
struct Blocks {
  Value bytes;

  Value part(int64_t begin, int64_t size) const { return slice(bytes, -1, begin, begin + size); }
  // In other dims.
  Value part(int64_t begin, int64_t size, std::initializer_list<Dim> dims) const {
    return with_last(part(begin, size), 1, dims);
  }

  // An f16 in two bytes: f32[..., blocks, 1, ...], with `dims` dims of a block.
  Value half(int64_t at, int dims = 1) const {
    const Value low = cast(part(at, 1), DType::u16), high = cast(part(at + 1, 1), DType::u16);
    Value number = as_f32(pattern_as(bits_or(low, shift_up(high, 8)), DType::f16));
    for (int i = 1; i < dims; ++i) number = unsqueeze(number, number.rank());
    return number;
  }

  // 16 bytes as numbers of 4 bits, the low ones first: [..., blocks, 2, 16].
  Value nibbles(int64_t at) const {
    return low_bits(shifted_along(part(at, 16, {1, 16}), 1, 2, 4), 15);
  }
  // The same with a fifth bit, which is bit j of four bytes for number j: [..., blocks, 2, 2, 8].
  Value with_fifth_bits(int64_t at, int64_t fifth) const {
    const Value bits = shifted_along(part(fifth, 4, {2, 2, 1}), 0, 8, 1);
    return bits_or(with_last(nibbles(at), 1, {2, 8}), shift_up(low_bits(bits, 1), 4));
  }
};

// ---- Blocks of 32 -------------------------------------------------------------------------------

Value product(const ScaledBlocks& parts) { return parts.scales * parts.numbers; }

// d (q - middle), or d q + m.
ScaledBlocks parts_of_q4_0(const Blocks& b) { return {b.half(0, 2), as_f32(b.nibbles(2)) - 8, 4}; }
ScaledBlocks parts_of_q5_0(const Blocks& b) {
  return {b.half(0, 3), as_f32(b.with_fifth_bits(6, 2)) - 16, 8};
}
ScaledBlocks parts_of_q8_0(const Blocks& b) {
  return {b.half(0), as_f32(pattern_as(b.part(2, 32), DType::i8)), 8};
}
Value q4_0(const Blocks& b) { return product(parts_of_q4_0(b)); }
Value q4_1(const Blocks& b) { return b.half(0, 2) * as_f32(b.nibbles(4)) + b.half(2, 2); }
Value q5_0(const Blocks& b) { return product(parts_of_q5_0(b)); }
Value q5_1(const Blocks& b) {
  return b.half(0, 3) * as_f32(b.with_fifth_bits(8, 4)) + b.half(2, 3);
}
Value q8_0(const Blocks& b) { return product(parts_of_q8_0(b)); }

// ---- Blocks of 256 ------------------------------------------------------------------------------

// The eight scales and the eight minima of q4_k and q5_k, of 6 bits each, in 12 bytes of three
// rows: u8[..., blocks, 2, 2, 2]. The first four of both are the low bits of the first two rows.
// The others have 4 bits in the third row and 2 on top of the first two.
struct SixBits {
  Value scales;
  Value minima;
};
SixBits six_bits(const Blocks& b) {
  const Value rows = b.part(4, 12, {3, 2, 2});
  const Value second = iota(b.bytes.builder(), DType::u8, {2, 1, 1}, 0);  // 1 for the last four
  const Value mask = 63 - second * 48;
  const auto joined = [&](Value low, Value top) {
    return bits_or(binary(Opcode::and_, low, mask), shift_up(shift_down(top, 6), 4) * second);
  };
  return {joined(slice(rows, -3, 0, 3, 2), slice(rows, -3, 0, 1)),
          joined(shifted_along(slice(rows, -3, 1, 3), 2, 2, 4), slice(rows, -3, 1, 2))};
}

// 128 bytes as numbers of 4 bits in eight parts of 32: [..., blocks, 2, 2, 2, 32].
Value eight_parts(const Blocks& b, int64_t at) {
  return low_bits(shifted_along(b.part(at, 128, {2, 2, 1, 32}), 1, 2, 4), 15);
}

// d scale q - dmin minimum, by parts of 32.
Value scaled_k(const Blocks& b, Value q) {
  const SixBits six = six_bits(b);
  const Value scales = b.half(0, 3) * as_f32(six.scales),
              minima = b.half(2, 3) * as_f32(six.minima);
  return unsqueeze(scales, scales.rank()) * as_f32(q) - unsqueeze(minima, minima.rank());
}

Value q4_k(const Blocks& b) { return scaled_k(b, eight_parts(b, 16)); }
Value q5_k(const Blocks& b) {
  const Value number = reshape(iota(b.bytes.builder(), DType::u8, {8}, 0), {2, 2, 2, 1});
  const Value bits = binary(Opcode::shift_right, b.part(16, 32, {1, 1, 1, 32}), number);
  return scaled_k(b, bits_or(eight_parts(b, 48), shift_up(low_bits(bits, 1), 4)));
}
// Halves, four parts of each, of which the first two are in low nibbles, and 2 x 16 numbers.
ScaledBlocks parts_of_q6_k(const Blocks& b) {
  const Value low = low_bits(shifted_along(b.part(0, 128, {2, 1, 2, 2, 16}), 3, 2, 4), 15);
  const Value part = reshape(iota(b.bytes.builder(), DType::u8, {4}, 0), {2, 2, 1, 1});
  const Value two =
      low_bits(binary(Opcode::shift_right, b.part(128, 64, {2, 1, 1, 2, 16}), part * 2), 3);
  const Value scales = as_f32(pattern_as(b.part(192, 16), DType::i8));
  return {with_last(b.half(208) * scales, 1, {2, 2, 2, 2, 1}),
          as_f32(bits_or(low, shift_up(two, 4))) - 32, 8};
}
Value q6_k(const Blocks& b) { return product(parts_of_q6_k(b)); }

constexpr Value (*kFormulas[kBlockFormats])(const Blocks&) = {q4_0, q4_1, q5_0, q5_1,
                                                              q8_0, q4_k, q5_k, q6_k};

}  // namespace

const BlockLayout& layout_of(BlockFormat format) { return kLayouts[static_cast<size_t>(format)]; }

namespace {

Blocks split(Value blocks, const BlockLayout& layout) {
  const Dim size = blocks.dim(-1);
  HONE_CHECK(size.is_static() && size.value() % layout.bytes == 0, "{} bytes are no blocks",
             size.to_string());
  return {with_last(blocks, 1, {size.value() / layout.bytes, layout.bytes})};
}

}  // namespace

Value unpacked_as_they_lie(Value blocks, BlockFormat format) {
  if (!blocks.builder().ok()) return blocks;
  return kFormulas[static_cast<size_t>(format)](split(blocks, layout_of(format)));
}

std::optional<ScaledBlocks> scaled_blocks(Value blocks, BlockFormat format) {
  const auto of = [&](ScaledBlocks (*parts)(const Blocks&)) {
    return std::optional(parts(split(blocks, layout_of(format))));
  };
  switch (format) {
    case BlockFormat::q4_0: return of(parts_of_q4_0);
    case BlockFormat::q5_0: return of(parts_of_q5_0);
    case BlockFormat::q8_0: return of(parts_of_q8_0);
    case BlockFormat::q6_k: return of(parts_of_q6_k);
    case BlockFormat::q4_1:
    case BlockFormat::q5_1:
    case BlockFormat::q4_k:
    case BlockFormat::q5_k: break;
  }
  return std::nullopt;
}

Value unpacked(Value blocks, BlockFormat format) {
  const Value numbers = unpacked_as_they_lie(blocks, format);
  if (!blocks.builder().ok()) return blocks;
  const BlockLayout& layout = layout_of(format);
  const int64_t count = blocks.dim(-1).value() / layout.bytes;
  return with_last(numbers, numbers.rank() - blocks.rank() + 1, {count * layout.elements});
}

Value product_of_blocks(Value x, Value blocks, BlockFormat format) {
  const Value weights = unpacked_as_they_lie(blocks, format);
  if (!x.builder().ok()) return x;
  Dims dims = weights.dims();
  dims[0] = x.dim(0);
  Ints summed;
  for (int64_t d = 1; d < weights.rank(); ++d) summed.push_back(d);
  return dot_general(reshape(x, dims), weights, {}, {}, summed, summed);
}

}  // namespace hone
