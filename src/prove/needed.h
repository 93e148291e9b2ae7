#pragma once

#include <span>
#include <vector>

#include "base/progress.h"
#include "rules/rule.h"

namespace hone {

struct NeededRules {
  std::vector<size_t> needed, derived;  // places in the list, in order
};

// Leaves out rules that follow from others, the largest first. A rule is left out if an e-graph of
// at most `nodes` nodes derives it by those that are left. The sizes are distinct where that is
// possible.
Result<NeededRules> needed_rules(std::span<const Rule> rules, size_t nodes, Progress& progress,
                                 const CancelToken* cancel = nullptr);

}  // namespace hone
