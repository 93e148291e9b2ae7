#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/builder.h"

// Weights in blocks of a few bits each, as files of language models hold them: the formulas of
// ggml. Blocks follow one another along a row.

namespace hone {

enum class BlockFormat : uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };
inline constexpr int kBlockFormats = 8;

struct BlockLayout {
  std::string_view name;  // "q4_k"
  int64_t bytes;          // of a block
  int64_t elements;
};
const BlockLayout& layout_of(BlockFormat format);

// The numbers that bytes of blocks stand for: u8[..., n * bytes] -> f32[..., n * elements]. The
// graph computes them by the format's formula, each step rounded to f32.
Value unpacked(Value blocks, BlockFormat format);
// The same in the dims in which the bits of a block lie: f32[..., n, ...].
Value unpacked_as_they_lie(Value blocks, BlockFormat format);

// The two factors of which unpacked_as_they_lie() is the product.
struct ScaledBlocks {
  Value scales;      // f32, one for some neighbours of a block
  Value numbers;     // f32: whole numbers from -2^(bits - 1) to 2^(bits - 1) - 1
  int64_t bits = 8;  // 4 or 8
};
// For q4_0, q5_0, q8_0 and q6_k; the others add a minimum.
std::optional<ScaledBlocks> scaled_blocks(Value blocks, BlockFormat format);

// x[rows, inputs] by the numbers of blocks u8[outputs, bytes] along each output: [rows, outputs].
// The sum goes over the dims in which the bits lie, so that a kernel can unpack them where it needs
// them.
Value product_of_blocks(Value x, Value blocks, BlockFormat format);

}  // namespace hone
