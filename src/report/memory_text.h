#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/plan_memory.h"

// The result of plan_memory, in words and as data.

namespace hone {

// A line per space: "154 buffers: height 1048576, bound 1039360, gap 9216 (0.9%), capacity
// 1048576"; or that no placement was found.
std::vector<std::string> memory_lines(const MemoryProblem& problem, const MemoryPlan& plan);

// Why there is no placement: which buffers do not fit together, at what moment, and how much of the
// capacity they use.
std::string witness_text(const MemoryProblem& problem, const MemoryPlan& plan,
                         std::span<const std::string_view> ids);

// An object, and a line break.
std::string memory_json(const MemoryProblem& problem, const MemoryPlan& plan, double seconds,
                        std::span<const std::string_view> ids);

}  // namespace hone
