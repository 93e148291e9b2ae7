#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compile/compilation.h"
#include "grad/rematerialize.h"

// Steps that take less memory, since they compute again what others store.

namespace hone {

// The memory that a step may take for values on its way: temporaries, as the memory planner counts
// them; not its inputs and outputs.
struct MemoryBudget {
  enum class Kind : uint8_t {
    all,    // everything is stored
    cheap,  // what is cheap to compute again is not
    bytes,  // at most `bytes`
    share,  // at most `share` of what it takes with everything stored
  };
  Kind kind = Kind::all;
  int64_t bytes = 0;
  double share = 1;

  bool operator==(const MemoryBudget&) const = default;
};
// "all", "cheap", "1500000", "64MiB", "0.5GB" or "50%".
Result<MemoryBudget> parse_memory_budget(std::string_view text);

struct SmallerStep {
  Graph graph = Graph();
  Storage storage = {};
  int64_t bytes = 0;      // of temporaries
  int64_t bytes_all = 0;  // with everything stored
  size_t nodes = 0;       // computed again
};

// The step within the budget that computes the least again, of the ways that it tries, planned for
// the target with the threads that the options say. An error says the least that it found. The
// outputs of `forward` are those of the function (rematerialize.h).
Result<SmallerStep> within_budget(const Graph& step, std::span<const uint32_t> forward,
                                  const MemoryBudget& budget, const Target& target,
                                  const CompileOptions& options = {});

}  // namespace hone
