#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "compile/compilation.h"
#include "lab/models/placement_network.h"

// Tunes the policy of placement for one graph: a policy gradient on that graph alone, and copying
// of the best placement so far. Some tens of steps do.

namespace hone {

inline constexpr int64_t kMostTuningSteps = 50;

struct PlacementTuning {
  PlaceGoal goal = PlaceGoal::step;
  int64_t steps = kMostTuningSteps;
  int64_t plans = 8;  // placements that each step draws
  double rate = 2e-3;
  uint64_t seed = 0;
  std::optional<DevicePlacement> start = {};  // a placement that is known: it is copied first
  CompileOptions compile = {};
  std::function<void(int64_t step, double value)> told = {};  // the best so far
};

struct TunedPlacement {
  PlacePolicy policy;
  DevicePlacement placement;  // the best of all steps
  double value = 0;
  double before = kCannotRun;  // what the policy came to without tuning; or the start, if better
};

// The problem of the judge has passed check(). Over the limit: no draw fits the memory, or the
// graph is too large for a step. The same seed gives the same bits.
Result<TunedPlacement> tune_placement(const PlaceJudge& judge, const PlacePolicy& policy,
                                      const PlacementTuning& options);

}  // namespace hone
