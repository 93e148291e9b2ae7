#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "place/fuse.h"
#include "place/fusion_head.h"
#include "place/placer.h"

// Fusions, devices and order of a problem, decided together or one after another. All ways have the
// same judge: that of the fused problem.

namespace hone {

struct JointPlacement {
  std::vector<uint8_t> fused;  // by fusion: it is made
  DevicePlacement placement;   // of the nodes of the problem; those of a fusion are on one device
  double value = kCannotRun;
};

// The decisions that a walk may change.
struct JointMoves {
  bool devices = false, order = false, fusions = false;
};

struct JointOptions {
  PlaceGoal goal = PlaceGoal::step;
  double seconds = 1e9;
  int64_t trials = 2000;  // placements that are judged, beside those of quick placers; 0: no limit
  uint64_t seed = 0;
  const PlacePolicy* policy = nullptr;  // null: the one that comes with hone
  // The head of that policy; null: the one that comes with hone for it. Without one, fusions are
  // all made at first, or none.
  const FusionHead* head = nullptr;
  bool asks_head = true;
  const CancelToken* cancel = nullptr;
};

// The value of these decisions; kCannotRun: they do not fit.
double joint_value(const PlaceProblem& problem, const JointPlacement& decided, PlaceGoal goal);

// Where nobody decides: fusions as wanted, contiguous parts, the most urgent node first. None if
// that does not fit.
std::optional<JointPlacement> default_joint(const PlaceProblem& problem,
                                            std::span<const uint8_t> wanted, PlaceGoal goal);
// The best that quick placers make of the problem with these fusions; by one of them alone, if it
// is named. None if nothing fits.
std::optional<JointPlacement> quick_joint(const PlaceProblem& problem,
                                          std::span<const uint8_t> wanted,
                                          const JointOptions& options, std::string_view by = {});

// Annealing from `start`, over what may move. The result is never worse.
JointPlacement walk_jointly(const PlaceProblem& problem, const JointPlacement& start,
                            const JointMoves& moves, const JointOptions& options);

// All together: quick placers with no fusions, with all, and with those that the head proposes;
// then a walk over everything from the best. Over the limit: nothing fits.
Result<JointPlacement> place_jointly(const PlaceProblem& problem, const JointOptions& options);

// The rows of the table: decisions that are left as they are by default, made one after another, or
// together. All rows judge as many placements.
inline constexpr std::string_view kDefaultRow = "default: all fusions, contiguous",
                                  kStagesRow = "all, one after another";
struct JointRow {
  std::string_view name;
  double value = kCannotRun;
};
Result<std::vector<JointRow>> joint_rows(const PlaceProblem& problem, const JointOptions& options);

}  // namespace hone
