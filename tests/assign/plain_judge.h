#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "assign/problem.h"

namespace hone::tested {

// As failures of tests print it.
inline std::string text(Int128 number) { return fmt::format("{}", number); }

// A plain judge: moment by moment, and edge by edge. None, if the assignment is not allowed.
inline std::optional<Int128> cost_of(const AssignProblem& problem, const Assignment& assignment) {
  Int128 cost = 0;
  int64_t last = 0;
  for (size_t i = 0; i < assignment.size(); ++i) {
    const AssignNode& node = problem.nodes[i];
    if (node.costs[assignment[i]] >= kForbiddenCost) return std::nullopt;
    cost += node.costs[assignment[i]];
    last = std::max(last, node.end);
  }
  for (const AssignEdge& edge : problem.edges) {
    const int64_t pair =
        problem.tables[edge.table][assignment[edge.first] * problem.options(edge.second) +
                                   assignment[edge.second]];
    if (pair >= kForbiddenCost) return std::nullopt;
    cost += pair;
  }
  for (int64_t moment = 0; problem.usage_limit && moment < last; ++moment) {
    Int128 usage = 0;
    for (size_t i = 0; i < assignment.size(); ++i)
      if (problem.nodes[i].begin <= moment && moment < problem.nodes[i].end)
        usage += problem.nodes[i].usages[assignment[i]];
    if (usage > *problem.usage_limit) return std::nullopt;
  }
  return cost;
}

// The least cost of all assignments.
inline std::optional<Int128> least_cost(const AssignProblem& problem) {
  std::optional<Int128> least;
  Assignment assignment(problem.nodes.size());
  while (true) {
    const std::optional<Int128> cost = cost_of(problem, assignment);
    if (cost && (!least || *cost < *least)) least = cost;
    size_t i = 0;
    while (i < assignment.size() && ++assignment[i] == problem.options(static_cast<uint32_t>(i)))
      assignment[i++] = 0;
    if (i == assignment.size()) return least;
  }
}

}  // namespace hone::tested
