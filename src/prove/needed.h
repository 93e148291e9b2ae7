#pragma once

#include <span>
#include <vector>

#include "base/progress.h"
#include "rules/rule.h"

namespace hone {

struct NeededRules {
  std::vector<size_t> needed, derived;  // places in the list, in order
};

// The largest first, each rule is left out that an e-graph of at most so many nodes derives by
// those that are left, at sizes of which no two are equal where that can be.
Result<NeededRules> needed_rules(std::span<const Rule> rules, size_t nodes, Progress& progress,
                                 const CancelToken* cancel = nullptr);

}  // namespace hone
