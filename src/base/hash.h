#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

// A fast 64-bit content hash. The values are stable: the same on every machine, byte order and
// version of hone, because caches and plans on disk are keyed by them. Changing a constant here
// orphans those files. The hash does not resist someone who wants a collision: code that loads by a
// hash compares the content, too.

namespace hone {

namespace detail {

// Odd, with about half of the bits set; digits of pi after the first ones.
inline constexpr uint64_t hash_keys[8] = {
    0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1, 0x082efa98ec4e6c89,
    0x452821e638d01377, 0xbe5466cf34e90c6d, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917};

// The 128-bit product folded to 64 bits. The operands are mixed back in so that a zero on one
// side does not erase the other side.
constexpr uint64_t fold_multiply(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return a ^ b ^ static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace detail

// Spreads one value over all 64 bits. A bijection: different values stay different.
constexpr uint64_t hash_mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xe9846af9b1a615d;
  value ^= value >> 32;
  value *= 0xe9846af9b1a615d;
  value ^= value >> 28;
  return value;
}

// Depends on the order: hash_combine(a, b) != hash_combine(b, a).
constexpr uint64_t hash_combine(uint64_t a, uint64_t b) {
  uint64_t folded = detail::fold_multiply(a ^ detail::hash_keys[0], b ^ detail::hash_keys[1]);
  return detail::fold_multiply(folded ^ detail::hash_keys[2], detail::hash_keys[3] + a);
}

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0);

inline uint64_t hash_string(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

// Hashes a sequence of values. Each string counts with its length, so that ("ab", "c") and
// ("a", "bc") differ. Integers count by value: int32_t 7 and int64_t 7 are equal.
class Hasher {
 public:
  explicit constexpr Hasher(uint64_t seed = 0) : state_(seed) {}

  template <std::integral T>
  constexpr Hasher& add(T value) {
    state_ = hash_combine(state_, static_cast<uint64_t>(value));
    return *this;
  }
  template <class T>
    requires std::is_enum_v<T>
  constexpr Hasher& add(T value) {
    return add(static_cast<std::underlying_type_t<T>>(value));
  }
  // Hashes the bits: 0.0 and -0.0 differ, as do NaNs with different payloads.
  constexpr Hasher& add(double value) { return add(std::bit_cast<uint64_t>(value)); }

  Hasher& add(std::span<const std::byte> bytes) { return add(hash_bytes(bytes)); }
  Hasher& add(std::string_view text) { return add(hash_string(text)); }

  // The elements and their number; an element may be anything that add() takes.
  template <class Range>
  constexpr Hasher& add_range(const Range& range) {
    uint64_t count = 0;
    for (const auto& element : range) {
      add(element);
      ++count;
    }
    return add(count);
  }

  constexpr uint64_t value() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace hone
