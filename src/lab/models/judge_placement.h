#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "place/generate.h"
#include "place/policy.h"

// How good the policy of placement is, against its rivals on drawn problems.

namespace hone {

struct PlacementTrial {
  int64_t graphs = 20;  // of each sort: seen, held out
  int64_t nodes = 200;
  int64_t trials = 2000;  // of each search
  uint64_t seed = 1;
  const CancelToken* cancel = nullptr;
};

// The mean of a placer over problems. Searches begin at the best of the quick rivals.
struct PlacementVerdict {
  std::string placer;
  double over_best = 0;  // geometric mean of its value over that of the best quick rival
  double gap = 0;        // mean share of the value that is above the bound
  double seconds = 0;    // mean time
  int64_t best = 0;      // problems where it is as good as the best of all
};
struct PlacementVerdicts {
  std::string problems;  // "seen", "held out"
  int64_t count = 0;
  std::vector<PlacementVerdict> placers = {};
};

// An error: a problem that no rival can place, or cancelled.
Result<std::vector<PlacementVerdicts>> judge_placement(const PlacePolicy& policy,
                                                       const PlacementTrial& options);
std::string verdicts_text(const std::vector<PlacementVerdicts>& verdicts);

// Searches for placements on multi-chip modules, by equal samples.
struct ChipVerdict {
  std::string search;
  // Geometric mean of its load over the best of all. A search that found no placement of a problem
  // counts as the worst one that did.
  double over_best = 0;
  double valid = 0;   // mean share of its samples that kept the rules and fitted
  double mended = 0;  // of them, those whose arenas did not fit at first
  int64_t found = 0;  // problems where it found one
  // Mean samples until it was as good as annealing at its end; one more than there were: never.
  double samples = 0;
};
struct ChipVerdicts {
  int64_t count = 0, compared = 0;  // problems; those where some search found a placement
  std::vector<ChipVerdict> searches = {};
};
// `trials` are samples. Graphs of all families on rings and lines of chips with little memory. The
// last row is the search of the policy with drawn weights: from scratch.
Result<ChipVerdicts> judge_chips(const PlacePolicy& policy, int64_t chips,
                                 const PlacementTrial& options);
std::string verdicts_text(const ChipVerdicts& verdicts);

}  // namespace hone
