#pragma once

#include <cstdint>
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

// x[rows, inputs] by the numbers of blocks u8[outputs, bytes] along each output: [rows, outputs].
// The sum goes over the dims in which the bits lie, so that a kernel can unpack them where it needs
// them.
Value product_of_blocks(Value x, Value blocks, BlockFormat format);

}  // namespace hone
