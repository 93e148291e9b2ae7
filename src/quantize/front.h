#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "base/error.h"

// Which levels of all layers together are worth a thought: the front of cost and measured error.

namespace hone::quantize {

inline constexpr int kStays = -1;  // the layer stays f32

// How often another choice is checked where arrays that calibration did not see have a larger
// error, and how much less is aimed at where answers count.
inline constexpr int kMostRounds = 6;
inline constexpr double kLowerAim = 0.7;

struct Assigned {
  std::vector<int> options = {};  // by layer: one of its options, or kStays
  double cost = 0;                // seconds or bytes
  double error = 0;               // measured
  bool is_allowed = false;        // its outputs are near enough to those of f32
};

// The assignments that no other one beats in both, allowed ones by allowed ones alone. Equal ones
// count once: the first.
class Front {
 public:
  void add(Assigned one);
  // From the cheapest, which has the largest error.
  std::span<const Assigned> all() const { return all_; }

 private:
  std::vector<Assigned> all_;
};

struct EvolveOptions {
  int64_t trials = 0;  // measurements
  double aim = 0;      // the error that counts: parents are those near it, if there are
  uint64_t seed = 0;
};
using MeasureAssigned = std::function<Result<Assigned>(const std::vector<int>&)>;

// Widens the front by changes and mixtures of its members. `counts`: how many options each layer
// has. Ends early where nothing new comes up.
Status evolve(Front& front, std::span<const int> counts, const EvolveOptions& options,
              const MeasureAssigned& measure);

}  // namespace hone::quantize
