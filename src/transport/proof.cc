#include "transport/proof.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hone {
namespace {

constexpr size_t kBlock = 64;

// The first 32 bits behind the point of the roots of the first primes.
template <size_t count>
constexpr std::array<uint32_t, count> root_bits(int degree) {
  std::array<uint32_t, count> bits = {};
  size_t found = 0;
  for (uint64_t n = 2; found < count; ++n) {
    bool is_prime = true;
    for (uint64_t d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
    if (!is_prime) continue;
    // The largest r with r^degree <= n * 2^(32 * degree).
    uint64_t root = 0;
    for (int bit = 35; bit >= 0; --bit) {
      const uint64_t tried = root | uint64_t{1} << bit;
      unsigned __int128 power = tried;
      for (int i = 1; i < degree; ++i) power *= tried;
      if (power <= static_cast<unsigned __int128>(n) << (32 * degree)) root = tried;
    }
    bits[found++] = static_cast<uint32_t>(root);
  }
  return bits;
}
constexpr std::array<uint32_t, 8> kStart = root_bits<8>(2);
constexpr std::array<uint32_t, 64> kRounds = root_bits<64>(3);

void add_block(std::array<uint32_t, 8>& state, const std::byte* block) {
  std::array<uint32_t, 64> words;
  for (size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (size_t k = 0; k < 4; ++k)
      words[i] = words[i] << 8 | std::to_integer<uint32_t>(block[4 * i + k]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += added[i];
}

}  // namespace

Digest sha256(std::span<const std::byte> bytes) {
  std::array<uint32_t, 8> state = kStart;
  const size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) add_block(state, bytes.data() + at);
  // The rest, a bit, and the number of bits.
  std::vector<std::byte> padded(bytes.begin() + static_cast<ptrdiff_t>(whole), bytes.end());
  padded.push_back(std::byte{0x80});
  while (padded.size() % kBlock != kBlock - 8) padded.push_back(std::byte{0});
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<std::byte>(bits >> shift));
  for (size_t at = 0; at < padded.size(); at += kBlock) add_block(state, padded.data() + at);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlock> block = {};
  if (key.size() > kBlock) {
    const Digest hashed = sha256(key);
    std::memcpy(block.data(), hashed.data(), hashed.size());
  } else if (!key.empty()) {
    std::memcpy(block.data(), key.data(), key.size());
  }
  const auto round = [&](std::byte pad, std::span<const std::byte> rest) {
    std::vector<std::byte> bytes;
    for (const std::byte each : block) bytes.push_back(each ^ pad);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return sha256(bytes);
  };
  return round(std::byte{0x5c}, round(std::byte{0x36}, message));
}

bool are_equal(const Digest& a, const Digest& b) {
  std::byte differences{0};
  for (size_t i = 0; i < a.size(); ++i) differences |= a[i] ^ b[i];
  return differences == std::byte{0};
}

Result<Digest> random_digest() {
  Digest digest;
  if (getrandom(digest.data(), digest.size(), 0) != static_cast<ssize_t>(digest.size()))
    return over_limit("the system gives no random bytes: {}", std::strerror(errno));
  return digest;
}

}  // namespace hone
