#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "alloc/problem.h"
#include "base/progress.h"

namespace hone {

// The techniques in use; by default all.
struct MemoryTechniques {
#define HONE_TECHNIQUE(name, doc) bool name = true;
#include "alloc/techniques.def"
#undef HONE_TECHNIQUE
};

struct MemoryTechnique {
  std::string_view name;
  std::string_view doc;
  bool MemoryTechniques::* flag;
};

inline constexpr std::array kMemoryTechniques = {
#define HONE_TECHNIQUE(name, doc) MemoryTechnique{#name, doc, &MemoryTechniques::name},
#include "alloc/techniques.def"
#undef HONE_TECHNIQUE
};

// The best known height and bound of a space.
struct MemoryBounds {
  int64_t height = 0;  // of the lowest placement so far
  int64_t bound = 0;   // no placement is lower
};

// Steps of the search for the arena of a program: a tenth of a second at most, and the same plan
// each time.
inline constexpr int64_t kMemoryNodes = 2'000;

struct MemoryOptions {
  bool minimize = false;  // go on below the capacity, as low as it goes
  // Limits; at the first one that is reached the best so far is the answer. 0: no limit.
  double seconds = 0;
  int64_t nodes = 0;  // steps of the search: the answer is then the same on every machine
  MemoryTechniques techniques = {};
  const CancelToken* cancel = nullptr;
  // Called when the height or the bound of a space gets better.
  std::function<void(uint32_t space, const MemoryBounds&)> better = {};
};

enum class MemoryVerdict : uint8_t {
  placed,      // within the capacities; when minimizing, as low as possible
  infeasible,  // proved: no placement is within the capacities
  limit,       // time or steps ended before an answer, or the caller cancelled
};

struct MemoryCounts {
  int64_t nodes = 0;
  int64_t backtracks = 0;
  int64_t restarts = 0;
};

struct MemoryPlan {
  MemoryVerdict verdict = MemoryVerdict::placed;
  std::vector<int64_t> offsets;  // of the lowest placement, also at a limit; none if infeasible
  std::vector<MemoryBounds> spaces;
  // If infeasible: a few buffers that do not fit together, and the moment at which their load is
  // highest. Leaving one out makes the rest fit, as far as a short search shows.
  std::vector<uint32_t> witness;
  int64_t witness_moment = 0;
  MemoryCounts counts;
};

// Places the buffers. The answer is deterministic unless seconds limit it, and heights_of has
// checked it. A malformed problem is an error.
Result<MemoryPlan> plan_memory(const MemoryProblem& problem, const MemoryOptions& options = {});

}  // namespace hone
