#include "prove/needed.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "rules/egraph.h"
#include "rules/saturate.h"
#include "rules/sizes.h"

namespace hone {
namespace {

// True if the left side becomes the right one.
Result<bool> derives(const Rule& rule, std::span<const RuleMatcher> matchers, size_t nodes) {
  Rng rng(1);
  const std::vector<Bindings> sizes = distinct_sizes(rule, 1, rng);
  if (sizes.empty()) return false;
  const RuleSides sides = HONE_TRY(at_sizes(rule, sizes[0]));
  EGraph egraph = HONE_TRY(EGraph::of(sides.left));
  HONE_TRY(saturate(egraph, matchers, {.nodes = nodes}));
  const std::vector<ValueId> outputs = HONE_TRY(egraph.add(sides.right, egraph.inputs()));
  egraph.rebuild();
  for (size_t o = 0; o < outputs.size(); ++o)
    if (egraph.find(outputs[o]) != egraph.find(egraph.outputs()[o])) return false;
  return true;
}

}  // namespace

Result<NeededRules> needed_rules(std::span<const Rule> rules, size_t nodes, Progress& progress,
                                 const CancelToken* cancel) {
  std::vector<size_t> order(rules.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size_of = [&](size_t i) {
    return std::pair(rules[i].left.node_count() + rules[i].right.node_count(), rules.size() - i);
  };
  std::ranges::sort(order, std::greater<>(), size_of);
  std::vector<bool> is_derived(rules.size(), false);
  progress.start(static_cast<int64_t>(rules.size()), "rules");
  for (size_t i : order) {
    if (cancel != nullptr) HONE_TRY(cancel->check());
    std::vector<RuleMatcher> matchers;
    for (size_t other = 0; other < rules.size(); ++other)
      if (other != i && !is_derived[other]) matchers.emplace_back(rules[other]);
    is_derived[i] = HONE_TRY(derives(rules[i], matchers, nodes));
    progress.advance();
  }
  progress.finish();
  NeededRules found;
  for (size_t i = 0; i < rules.size(); ++i)
    (is_derived[i] ? found.derived : found.needed).push_back(i);
  return found;
}

}  // namespace hone
