#include "base/hash.h"

namespace hone {

namespace {

using detail::fold_multiply;
using detail::hash_keys;

uint64_t load64(const std::byte* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

uint64_t load32(const std::byte* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::little ? value : __builtin_bswap32(value);
}

// Four independent chains hide the latency of the multiplier. The two factors start from
// different keys, so that swapping the two words of a pair changes the product.
uint64_t fold_blocks(const std::byte*& from, size_t& left, uint64_t state) {
  uint64_t lanes[4] = {state ^ hash_keys[4], state ^ hash_keys[5], state ^ hash_keys[6],
                       state ^ hash_keys[7]};
  while (left > 64) {
    for (size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = fold_multiply(load64(from + 16 * lane) ^ hash_keys[lane],
                                  load64(from + 16 * lane + 8) ^ lanes[lane]);
    }
    from += 64;
    left -= 64;
  }
  return hash_combine(hash_combine(lanes[0], lanes[1]), hash_combine(lanes[2], lanes[3]));
}

}  // namespace

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  const std::byte* from = bytes.data();
  size_t left = bytes.size();
  uint64_t state = seed ^ hash_keys[0];
  if (left > 64) state = fold_blocks(from, left, state);
  while (left > 16) {
    state = fold_multiply(load64(from) ^ hash_keys[2], load64(from + 8) ^ state);
    from += 16;
    left -= 16;
  }
  // The last 0 to 16 bytes as two words, which may overlap; the length tells the cases apart.
  uint64_t first = 0;
  uint64_t second = 0;
  if (left >= 8) {
    first = load64(from);
    second = load64(from + left - 8);
  } else if (left >= 4) {
    first = load32(from);
    second = load32(from + left - 4);
  } else if (left > 0) {
    first = std::to_integer<uint64_t>(from[0]) << 16 |
            std::to_integer<uint64_t>(from[left / 2]) << 8 |
            std::to_integer<uint64_t>(from[left - 1]);
  }
  state = fold_multiply(first ^ hash_keys[1], second ^ state);
  return hash_combine(state, bytes.size());
}

}  // namespace hone
