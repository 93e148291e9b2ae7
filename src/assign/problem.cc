#include "assign/problem.h"

#include <algorithm>

namespace hone {
namespace {

Status check_node(const AssignNode& node) {
  if (node.costs.empty()) return bad_input("there is no option");
  if (node.costs.size() != node.usages.size())
    return bad_input("{} costs and {} usages, which are those of its options", node.costs.size(),
                     node.usages.size());
  for (int64_t cost : node.costs)
    if (cost < 0) return bad_input("the cost {} is negative", cost);
  for (int64_t usage : node.usages)
    if (usage < 0) return bad_input("the usage {} is negative", usage);
  return {};
}

Status check_edge(const AssignProblem& problem, const AssignEdge& edge) {
  for (uint32_t node : {edge.first, edge.second})
    if (node >= problem.nodes.size())
      return bad_input("there is no node {}: the problem has {}", node, problem.nodes.size());
  if (edge.first == edge.second) return bad_input("it joins node {} with itself", edge.first);
  if (edge.table >= problem.tables.size())
    return bad_input("there is no table {}: the problem has {}", edge.table, problem.tables.size());
  const size_t costs = problem.tables[edge.table].size();
  const size_t first = problem.options(edge.first), second = problem.options(edge.second);
  if (costs != first * second)
    return bad_input("{} costs for {} x {} options of the nodes {} and {}", costs, first, second,
                     edge.first, edge.second);
  return {};
}

// A change of the number of nodes alive, and of what they use.
struct UsageChange {
  int64_t moment;
  int64_t usage;  // what begins, or, as a negative number, what ends
  int nodes;
};

}  // namespace

Status check(const AssignProblem& problem) {
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    if (Status status = check_node(problem.nodes[i]); !status.ok())
      return std::move(status).error().about(fmt::format("node {}", i));
  for (size_t i = 0; i < problem.edges.size(); ++i)
    if (Status status = check_edge(problem, problem.edges[i]); !status.ok())
      return std::move(status).error().about(fmt::format("edge {}", i));
  for (const std::vector<int64_t>& table : problem.tables)
    if (std::ranges::any_of(table, [](int64_t cost) { return cost < 0; }))
      return bad_input("a cost of an edge is negative");
  if (problem.usage_limit && *problem.usage_limit < 0)
    return bad_input("the usage limit {} is negative", *problem.usage_limit);
  return {};
}

Result<AssignValue> evaluate(const AssignProblem& problem, std::span<const uint32_t> assignment) {
  if (assignment.size() != problem.nodes.size())
    return bad_input("{} options are given for {} nodes", assignment.size(), problem.nodes.size());
  AssignValue value;
  const auto take = [&](int64_t cost, const auto& describe) {
    value.cost += cost;
    if (cost < kForbiddenCost) return;
    if (++value.forbidden == 1) value.first_forbidden = describe();
  };
  std::vector<UsageChange> changes;
  for (size_t i = 0; i < assignment.size(); ++i) {
    const AssignNode& node = problem.nodes[i];
    if (assignment[i] >= node.costs.size())
      return bad_input("node {}: there is no option {} among its {}", i, assignment[i],
                       node.costs.size());
    take(node.costs[assignment[i]],
         [&] { return fmt::format("node {}, option {}", i, assignment[i]); });
    if (!node.is_ever_alive()) continue;
    const int64_t usage = node.usages[assignment[i]];
    changes.push_back({node.begin, usage, 1});
    changes.push_back({node.end, -usage, -1});
  }
  for (size_t i = 0; i < problem.edges.size(); ++i) {
    const AssignEdge& edge = problem.edges[i];
    const uint32_t first = assignment[edge.first], second = assignment[edge.second];
    const size_t pair = first * problem.options(edge.second) + second;
    take(problem.tables[edge.table][pair], [&] {
      return fmt::format("edge {} (node {}, option {}; node {}, option {})", i, edge.first, first,
                         edge.second, second);
    });
  }
  std::ranges::sort(changes, {}, &UsageChange::moment);
  Int128 usage = 0;
  int64_t alive = 0;
  for (size_t i = 0; i < changes.size();) {
    const int64_t moment = changes[i].moment;
    for (; i < changes.size() && changes[i].moment == moment; ++i) {
      usage += changes[i].usage;
      alive += changes[i].nodes;
    }
    if (usage <= value.peak) continue;
    value.peak = usage;
    value.peak_moment = moment;
    value.peak_nodes = alive;
  }
  return value;
}

Status check_fits(const AssignProblem& problem, const AssignValue& value) {
  if (value.forbidden > 0)
    return check_failed("{} options or pairs of options are forbidden, which cost {} or more: {}",
                        value.forbidden, kForbiddenCost, value.first_forbidden);
  if (value.peak > problem.limit())
    return check_failed("at moment {} the {} nodes alive use {}, {} above the limit {}",
                        value.peak_moment, value.peak_nodes, value.peak,
                        value.peak - problem.limit(), problem.limit());
  return {};
}

}  // namespace hone
