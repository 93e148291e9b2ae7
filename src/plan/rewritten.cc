#include "plan/rewritten.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "ir/graph_copy.h"
#include "plan/planned.h"
#include "rules/rule_files.h"

namespace hone {
namespace {

// The inputs of a region are not inputs of the graph: nobody can assume anything of them.
Status assumes_nothing(const Plan& plan, const std::string& region) {
  for (const Rewrite& each : plan.rewrite)
    if (each.range > 0)
      return bad_input("region %{}: the rule '{}' assumes a range of inputs", region,
                       excerpt(each.rule));
  return {};
}

// The graph and, in it, its regions.
Result<Graph> replayed(Graph graph, const Plan& plan, std::span<const Rule> rules) {
  graph = HONE_TRY(replay(std::move(graph), plan.rewrite, rules));
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::vector<GraphRef> regions(graph.regions(n).begin(), graph.regions(n).end());
    if (!regions.empty()) {
      const std::vector<std::string_view> names = region_names(graph.op(n).def());
      for (size_t i = 0; i < regions.size(); ++i) {
        const std::string key = fmt::format("{}.{}", step_name(graph, n), names[i]);
        const auto inner = plan.region.find(key);
        if (inner == plan.region.end() || !has_rewrites(inner->second)) continue;
        HONE_TRY(assumes_nothing(inner->second, key));
        Result<Graph> made = replayed(*regions[i], inner->second, rules);
        if (!made.ok()) return std::move(made).error().within(fmt::format("region %{}", key));
        regions[i] = std::make_shared<Graph>(*std::move(made));
      }
    }
    HONE_TRY(copy.node(n, graph.op(n), std::move(regions)));
  }
  return copy.finish();
}

}  // namespace

bool has_rewrites(const Plan& plan) {
  for (const auto& [key, inner] : plan.region)
    if (has_rewrites(inner)) return true;
  return !plan.rewrite.empty();
}

Plan only_rewrites(const Plan& plan) {
  Plan only;
  only.graph = plan.graph;
  set_rewrites(only, plan);
  return only;
}

Plan without_rewrites(Plan plan) {
  plan.rewrite.clear();
  for (auto& [key, inner] : plan.region) inner = without_rewrites(std::move(inner));
  return plan;
}

void set_rewrites(Plan& plan, const Plan& from) {
  plan.rewrite = from.rewrite;
  for (const auto& [key, inner] : from.region)
    if (has_rewrites(inner)) set_rewrites(plan.region[key], inner);
}

int32_t assumed_range(const Plan& plan) {
  int32_t least = 0;
  for (const Rewrite& each : plan.rewrite)
    if (each.range > 0 && (least == 0 || each.range < least)) least = each.range;
  return least;
}

std::vector<AppliedRule> applied_rules(const Plan& plan) {
  std::map<std::string, size_t> times;
  const auto count = [&](const auto& self, const Plan& part) -> void {
    for (const Rewrite& each : part.rewrite) ++times[each.rule];
    for (const auto& [key, inner] : part.region) self(self, inner);
  };
  count(count, plan);
  std::vector<AppliedRule> applied;
  for (const auto& [rule, count_of_rule] : times) applied.push_back({rule, count_of_rule});
  std::ranges::sort(applied, {}, [](const AppliedRule& each) {
    return std::tuple(-static_cast<int64_t>(each.times), each.rule);
  });
  return applied;
}

Result<Graph> rewritten(const Graph& graph, const Plan& plan) {
  if (!has_rewrites(plan)) return graph;
  return rewritten(graph, plan, HONE_TRY(default_rules()));
}

Result<Graph> rewritten(const Graph& graph, const Plan& plan, std::span<const Rule> rules) {
  if (!has_rewrites(plan)) return graph;
  return finish_rewrites(HONE_TRY(replayed(HONE_TRY(rewritable(graph)), plan, rules)), graph);
}

}  // namespace hone
