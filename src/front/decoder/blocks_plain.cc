#include <cstring>

#include "base/error.h"
#include "front/decoder/blocks.h"

// The formulas of blocks.cc as plain code, with the same roundings in the same order: a weight is
// unpacked once, when the model is loaded.

namespace hone {
namespace {

uint32_t byte_at(const std::byte* at) { return std::to_integer<uint32_t>(*at); }

// The number of an f16 in two bytes.
float half_at(const std::byte* at) {
  const uint64_t pattern = byte_at(at) | byte_at(at + 1) << 8;
  return static_cast<float>(decode_real(DType::f16, pattern));
}

// The number of 4 bits of element j of 32, in 16 bytes.
uint32_t nibble(const std::byte* bytes, int j) {
  return j < 16 ? byte_at(bytes + j) & 15 : byte_at(bytes + j - 16) >> 4;
}

uint32_t word_at(const std::byte* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// d (q - middle) for `with_minimum` false, else d q + m.
template <bool with_minimum, bool with_fifth>
void unpack_32(const std::byte* block, float* out) {
  constexpr int kFifth = with_minimum ? 4 : 2;
  const float d = half_at(block), m = with_minimum ? half_at(block + 2) : 0;
  const uint32_t fifth = with_fifth ? word_at(block + kFifth) : 0;
  const std::byte* const q = block + kFifth + (with_fifth ? 4 : 0);
  for (int j = 0; j < 32; ++j) {
    const auto number = static_cast<float>(static_cast<int>(nibble(q, j) | (fifth >> j & 1) << 4));
    if constexpr (with_minimum) {
      const float product = d * number;
      out[j] = product + m;
    } else {
      out[j] = d * (number - (with_fifth ? 16 : 8));
    }
  }
}

void unpack_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 32; ++j)
    out[j] = d * static_cast<float>(static_cast<int8_t>(byte_at(block + 2 + j)));
}

// Scale or minimum j of eight; `first` bytes hold its low half, `second` those of the other kind.
struct ScaleAndMinimum {
  uint32_t scale;
  uint32_t minimum;
};
ScaleAndMinimum pair_at(const std::byte* s, int j) {
  if (j < 4) return {byte_at(s + j) & 63, byte_at(s + j + 4) & 63};
  return {(byte_at(s + j + 4) & 15) | byte_at(s + j - 4) >> 6 << 4,
          byte_at(s + j + 4) >> 4 | byte_at(s + j) >> 6 << 4};
}

template <bool with_fifth>
void unpack_k(const std::byte* block, float* out) {
  const float d = half_at(block), least = half_at(block + 2);
  const std::byte* const fifth = block + 16;
  const std::byte* const q = block + (with_fifth ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    const ScaleAndMinimum pair = pair_at(block + 4, j);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = least * static_cast<float>(pair.minimum);
    for (int l = 0; l < 32; ++l) {
      uint32_t number = byte_at(q + j / 2 * 32 + l) >> (j % 2 * 4) & 15;
      if constexpr (with_fifth) number |= (byte_at(fifth + l) >> j & 1) << 4;
      const float product = scale * static_cast<float>(static_cast<int>(number));
      out[32 * j + l] = product - minimum;
    }
  }
}

void unpack_q6_k(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int e = 0; e < 256; ++e) {
    const int half = e / 128, part = e % 128 / 32, l = e % 32;
    const uint32_t low = byte_at(block + 64 * half + 32 * (part % 2) + l) >> (part / 2 * 4) & 15;
    const uint32_t high = byte_at(block + 128 + 32 * half + l) >> (2 * part) & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(byte_at(block + 192 + e / 16)));
    out[e] = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

constexpr void (*kUnpack[kBlockFormats])(const std::byte*, float*) = {unpack_32<false, false>,
                                                                      unpack_32<true, false>,
                                                                      unpack_32<false, true>,
                                                                      unpack_32<true, true>,
                                                                      unpack_q8_0,
                                                                      unpack_k<false>,
                                                                      unpack_k<true>,
                                                                      unpack_q6_k};

}  // namespace

void unpack_blocks(BlockFormat format, std::span<const std::byte> blocks, std::span<float> out) {
  const BlockLayout& layout = layout_of(format);
  const auto bytes = static_cast<size_t>(layout.bytes);
  const auto elements = static_cast<size_t>(layout.elements);
  HONE_CHECK(blocks.size() / bytes * elements == out.size(), "{} bytes are not {} elements of {}",
             blocks.size(), out.size(), layout.name);
  for (size_t i = 0; i * elements < out.size(); ++i)
    kUnpack[static_cast<size_t>(format)](blocks.data() + i * bytes, out.data() + i * elements);
}

}  // namespace hone
