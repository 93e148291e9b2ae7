#pragma once

#include <string>

#include "plan/plan.h"

namespace hone {

bool has_rewrites(const Plan& plan);   // regions too
Plan only_rewrites(const Plan& plan);  // and the graph's name
Plan without_rewrites(Plan plan);
// Gives the rewrites of `from` to a plan that has none.
void set_rewrites(Plan& plan, const Plan& from);

// The decades that all its rewrites assume of inputs; 0: nothing.
int32_t assumed_range(const Plan& plan);

struct AppliedRule {
  std::string rule;
  size_t times = 0;
};
// The rules of the rewrites, also of those in regions: the most often applied one first.
std::vector<AppliedRule> applied_rules(const Plan& plan);

// The graph after the rewrites of the plan, those of regions after the ones around them; to be
// prepared. The given one, if there are none. Errors name the entry, as "rewrite 3" or
// "region %loop.body, rewrite 1".
Result<Graph> rewritten(const Graph& graph, const Plan& plan);
// The same by these rules in place of default_rules().
Result<Graph> rewritten(const Graph& graph, const Plan& plan, std::span<const Rule> rules);

}  // namespace hone
