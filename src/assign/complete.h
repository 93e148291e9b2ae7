#pragma once

#include <optional>
#include <vector>

#include "assign/core.h"

namespace hone {

// The result of a search through all solutions.
struct CompleteAnswer {
  bool is_complete = false;                      // else it gave up: too many steps
  std::optional<std::vector<uint32_t>> options;  // the best; none: no solution keeps the limits
};

// Looks through all solutions of a small core, in a limited number of steps.
CompleteAnswer complete_search(const Core& core, int64_t steps);

}  // namespace hone
