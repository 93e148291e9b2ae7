#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace hone {

// A small sequential generator (xoshiro256++ seeded through splitmix64): the same seed gives the
// same numbers on every machine. Not for secrets. Not thread-safe: fork() one per thread.
class Rng {
 public:
  using result_type = uint64_t;  // Usable with the distributions of <random>.
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  explicit Rng(uint64_t seed);

  uint64_t operator()() { return next(); }
  uint64_t next();

  // An integer in [0, bound), each with the same probability; bound > 0.
  uint64_t below(uint64_t bound);
  // An integer in [low, high], both ends included.
  int64_t between(int64_t low, int64_t high);

  // A real in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // A real in [low, high]; high itself only by rounding.
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Mean 0, deviation 1. The last bits depend on the log() of the C library.
  double normal();
  bool chance(double probability) { return uniform() < probability; }

  // An index, with a probability proportional to its weight. Weights are finite, not negative,
  // and one is positive.
  size_t weighted(std::span<const double> weights);

  template <class Range>
  auto& pick(Range& range) {
    HONE_CHECK(std::size(range) > 0, "pick from nothing");
    return range[below(std::size(range))];
  }

  template <class Range>
  void shuffle(Range&& range) {
    for (size_t i = std::size(range); i > 1; --i) std::swap(range[i - 1], range[below(i)]);
  }

  // A generator whose numbers are independent of those that follow here.
  Rng fork() { return Rng(next()); }

 private:
  std::array<uint64_t, 4> state_;
};

// The 20-round Threefry block functions of Random123 (Salmon et al., SC 2011), bit for bit: a
// pure function from key and counter to random bits.
std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);
std::array<uint64_t, 2> threefry2x64(std::array<uint64_t, 2> key, std::array<uint64_t, 2> counter);

// Bulk filling for weights and test data. Element i is a pure function of (seed, first + i), the
// same on every machine. So any number of threads may fill a range in pieces. Pieces whose `first`
// is a multiple of fill_block are fastest.
inline constexpr int64_t fill_block = 1024;

// Mean 0, deviation `scale`. Each value is a sum of eight uniforms: close to the normal
// distribution up to about 3 deviations (excess kurtosis -0.15), never beyond 4.9 deviations.
void fill_normal(std::span<float> out, uint64_t seed, float scale = 1, int64_t first = 0);

// In [low, high], in steps of (high - low) / 2^24; high itself only by rounding.
void fill_uniform(std::span<float> out, uint64_t seed, float low, float high, int64_t first = 0);

}  // namespace hone
