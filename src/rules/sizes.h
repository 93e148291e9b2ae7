#pragma once

#include <vector>

#include "base/rng.h"
#include "rules/rule.h"

// Sizes at which rules are tested.

namespace hone {

// Sizes that the rule admits, each symbol another one, none square where it can be, small enough to
// evaluate both sides exactly; at most `count` different ones. Empty: none was found.
std::vector<Bindings> distinct_sizes(const Rule& rule, size_t count, Rng& rng);

// All sizes that the rule admits whose symbols are among the first `values` of their ranges, from
// the smallest on; at most `limit`.
std::vector<Bindings> small_sizes(const Rule& rule, int64_t values, size_t limit);

// Both sides at these sizes, spelled out in primitive ops.
struct RuleSides {
  Graph left, right;
};
Result<RuleSides> at_sizes(const Rule& rule, const Bindings& sizes);

std::string to_string(const Bindings& sizes);  // "M = 3, N = 5"

}  // namespace hone
