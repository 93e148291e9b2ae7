#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace hone {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = crc_table();

uint32_t add_bytes(uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t add_words(uint32_t crc,
                                                     std::span<const std::byte>& bytes) {
  uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    wide = _mm_crc32_u64(wide, word);
  }
  return static_cast<uint32_t>(wide);
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) crc = add_words(crc, bytes);
#endif
  return ~add_bytes(crc, bytes);
}

}  // namespace hone
