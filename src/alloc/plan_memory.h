#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "alloc/problem.h"
#include "base/progress.h"

namespace hone {

// What the search may use; all of them by default.
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

// The best that is known so far of a space.
struct MemoryBounds {
  int64_t height = 0;  // of the lowest placement that was found
  int64_t bound = 0;   // no placement is lower
};

struct MemoryOptions {
  bool minimize = false;  // go on below the capacity, as low as it goes
  double seconds = 0;     // then the best so far is the answer; 0: no limit
  int64_t nodes = 0;  // so many steps of the search, for answers that depend on no clock; 0: any
  MemoryTechniques techniques = {};
  const CancelToken* cancel = nullptr;
  // Called where the height or the bound of a space became better.
  std::function<void(uint32_t space, const MemoryBounds&)> better = {};
};

enum class MemoryVerdict : uint8_t {
  placed,      // within the capacities; if asked to minimize, as low as can be
  infeasible,  // proved: no placement is within the capacities
  limit,       // the time, or the steps, ended before either, or it was cancelled
};

struct MemoryCounts {
  int64_t nodes = 0;
  int64_t backtracks = 0;
  int64_t restarts = 0;
};

struct MemoryPlan {
  MemoryVerdict verdict = MemoryVerdict::placed;
  std::vector<int64_t> offsets;  // the lowest that was found, also of a limit; none if infeasible
  std::vector<MemoryBounds> spaces;
  // Of what is infeasible: buffers that do not fit together, and a moment at which the most of them
  // are in use. None could be left out, as far as that was soon found.
  std::vector<uint32_t> witness;
  int64_t witness_moment = 0;
  MemoryCounts counts;
};

// Places the buffers: deterministic unless it is limited by seconds. What is returned was checked
// by heights_of. An error is a problem that is not well formed.
Result<MemoryPlan> plan_memory(const MemoryProblem& problem, const MemoryOptions& options = {});

}  // namespace hone
