#include "base/rng.h"

#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hone {

namespace {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
uint64_t splitmix(uint64_t& state) {
  uint64_t mixed = state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

// Eight xoshiro128++ generators side by side, one per vector lane.
class LaneRng {
 public:
  static constexpr int lanes = 8;
  using Words = std::array<uint32_t, lanes>;

  explicit LaneRng(uint64_t seed) {
    for (Words& words : state_) {
      for (uint32_t& word : words) word = static_cast<uint32_t>(splitmix(seed) >> 32);
    }
  }

  Words next() {
    Words out;
    for (int i = 0; i < lanes; ++i) {
      out[i] = std::rotl(state_[0][i] + state_[3][i], 7) + state_[0][i];
      const uint32_t shifted = state_[1][i] << 9;
      state_[2][i] ^= state_[0][i];
      state_[3][i] ^= state_[1][i];
      state_[1][i] ^= state_[2][i];
      state_[0][i] ^= state_[3][i];
      state_[2][i] ^= shifted;
      state_[3][i] = std::rotl(state_[3][i], 11);
    }
    return out;
  }

 private:
  std::array<Words, 4> state_;
};

// Eight uniform 16-bit numbers per value: mean 8 * 65535 / 2, variance 8 * (65536^2 - 1) / 12.
void normal_block(float* out, LaneRng rng, float scale) {
  constexpr int32_t mean = 4 * 65535;
  const float factor = static_cast<float>(scale / std::sqrt(8.0 * (65536.0 * 65536.0 - 1) / 12));
  for (int64_t at = 0; at < fill_block; at += LaneRng::lanes) {
    LaneRng::Words sum = {};
    for (int draw = 0; draw < 4; ++draw) {
      const LaneRng::Words bits = rng.next();
      for (int i = 0; i < LaneRng::lanes; ++i) sum[i] += (bits[i] & 0xffff) + (bits[i] >> 16);
    }
    for (int i = 0; i < LaneRng::lanes; ++i) {
      out[at + i] = static_cast<float>(static_cast<int32_t>(sum[i]) - mean) * factor;
    }
  }
}

void uniform_block(float* out, LaneRng rng, float low, float step) {
  for (int64_t at = 0; at < fill_block; at += LaneRng::lanes) {
    const LaneRng::Words bits = rng.next();
    for (int i = 0; i < LaneRng::lanes; ++i) {
      out[at + i] = low + static_cast<float>(static_cast<int32_t>(bits[i] >> 8)) * step;
    }
  }
}

// Calls block(float* out, LaneRng) for each block of the element numbers that overlaps the range.
template <class Block>
void fill_blocks(std::span<float> out, uint64_t seed, int64_t first, Block block) {
  HONE_CHECK(first >= 0, "fill from element {}", first);
  const int64_t size = static_cast<int64_t>(out.size());
  std::array<float, fill_block> whole;
  for (int64_t done = 0; done < size;) {
    const int64_t number = (first + done) / fill_block;
    const int64_t skip = (first + done) % fill_block;
    const int64_t count = std::min(fill_block - skip, size - done);
    const LaneRng rng(hash_combine(seed, static_cast<uint64_t>(number)));
    if (count == fill_block) {
      block(out.data() + done, rng);
    } else {
      block(whole.data(), rng);
      std::copy_n(whole.begin() + skip, count, out.begin() + done);
    }
    done += count;
  }
}

template <class Word>
std::array<Word, 2> threefry(std::array<Word, 2> key, std::array<Word, 2> counter, Word parity,
                             const std::array<int, 8>& rotations) {
  constexpr int rounds = 20;
  const Word keys[3] = {key[0], key[1], static_cast<Word>(parity ^ key[0] ^ key[1])};
  Word x = counter[0] + keys[0];
  Word y = counter[1] + keys[1];
  for (int round = 0; round < rounds; ++round) {
    x += y;
    y = std::rotl(y, rotations[round % 8]) ^ x;
    if (round % 4 != 3) continue;
    const int injection = round / 4 + 1;
    x += keys[injection % 3];
    y += keys[(injection + 1) % 3] + static_cast<Word>(injection);
  }
  return {x, y};
}

}  // namespace

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix(seed);
}

// Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021).
uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// Lemire, "Fast random integer generation in an interval" (2019). The high half of a product is
// uniform once the few low halves that would come up too often are drawn again.
uint64_t Rng::below(uint64_t bound) {
  HONE_CHECK(bound > 0, "a random number below 0");
  unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t surplus = -bound % bound;
    while (static_cast<uint64_t>(product) < surplus) {
      product = static_cast<unsigned __int128>(next()) * bound;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

int64_t Rng::between(int64_t low, int64_t high) {
  HONE_CHECK(low <= high, "a random number in [{}, {}]", low, high);
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = count == 0 ? next() : below(count);  // 0: all 2^64 numbers.
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

// Marsaglia's polar method. The second value is not kept: the state stays four words.
double Rng::normal() {
  for (;;) {
    const double x = uniform(-1, 1);
    const double y = uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

size_t Rng::weighted(std::span<const double> weights) {
  double sum = 0;
  for (double weight : weights) {
    HONE_CHECK(weight >= 0 && std::isfinite(weight), "a weight of {}", weight);
    sum += weight;
  }
  HONE_CHECK(sum > 0, "no weight is positive");
  double left = uniform() * sum;
  size_t chosen = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    chosen = i;  // Stays the last one that has a weight if rounding leaves a rest.
    if (left < weights[i]) break;
    left -= weights[i];
  }
  return chosen;
}

std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter) {
  return threefry<uint32_t>(key, counter, 0x1bd11bda, {13, 15, 26, 6, 17, 29, 16, 24});
}

std::array<uint64_t, 2> threefry2x64(std::array<uint64_t, 2> key, std::array<uint64_t, 2> counter) {
  return threefry<uint64_t>(key, counter, 0x1bd11bdaa9fc1a22, {16, 42, 12, 31, 16, 32, 24, 21});
}

void fill_normal(std::span<float> out, uint64_t seed, float scale, int64_t first) {
  fill_blocks(out, seed, first, [&](float* to, LaneRng rng) { normal_block(to, rng, scale); });
}

void fill_uniform(std::span<float> out, uint64_t seed, float low, float high, int64_t first) {
  const float step = (high - low) * 0x1.0p-24f;
  fill_blocks(out, seed, first, [&](float* to, LaneRng rng) { uniform_block(to, rng, low, step); });
}

}  // namespace hone
