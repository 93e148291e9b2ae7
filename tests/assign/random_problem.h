#pragma once

#include <algorithm>

#include "assign/problem.h"
#include "base/rng.h"

namespace hone::tested {

struct RandomAssign {
  int64_t nodes = 5;
  int64_t options = 4;  // at most
  double edges = 1.2;   // per node
  int64_t cost = 20;
  double forbidden = 0.15;  // the share of pairs
  double functions = 0.2;   // the share of edges in which one option allows one
  double room = 0.4;        // between the least and the most usage, where the limit is
  int64_t moments = 8;
};

inline AssignProblem random_assign(const RandomAssign& form, Rng& rng) {
  AssignProblem problem;
  problem.name = "random";
  for (int64_t i = 0; i < form.nodes; ++i) {
    AssignNode node;
    node.begin = rng.between(0, form.moments);
    node.end = rng.between(node.begin, form.moments);
    const bool is_flat = rng.chance(0.3);
    for (int64_t x = rng.between(1, form.options); x > 0; --x) {
      node.costs.push_back(form.forbidden > 0 && rng.chance(0.05) ? kForbiddenCost
                                                                  : rng.between(0, form.cost));
      node.usages.push_back(is_flat ? 3 : rng.between(0, 9));
    }
    problem.nodes.push_back(node);
  }
  const auto count = static_cast<int64_t>(form.edges * static_cast<double>(form.nodes));
  for (int64_t e = 0; e < count && form.nodes > 1; ++e) {
    const auto a = static_cast<uint32_t>(rng.between(0, form.nodes - 1));
    auto b = static_cast<uint32_t>(rng.between(0, form.nodes - 2));
    if (b >= a) ++b;
    const size_t rows = problem.options(a), columns = problem.options(b);
    std::vector<int64_t> table;
    const bool is_function = rng.chance(form.functions), is_sum = rng.chance(0.1);
    for (size_t x = 0; x < rows; ++x)
      for (size_t y = 0; y < columns; ++y) {
        int64_t cost = rng.chance(form.forbidden) ? kForbiddenCost : rng.between(0, form.cost);
        if (is_function) cost = y == x % columns ? 0 : kForbiddenCost;
        if (is_sum) cost = static_cast<int64_t>(3 * x + y);
        table.push_back(cost);
      }
    problem.edges.push_back({a, b, static_cast<uint32_t>(problem.tables.size())});
    problem.tables.push_back(std::move(table));
  }
  int64_t least = 0, most = 0;
  for (int64_t moment = 0; moment < form.moments; ++moment) {
    int64_t low = 0, high = 0;
    for (const AssignNode& node : problem.nodes)
      if (node.begin <= moment && moment < node.end) {
        low += std::ranges::min(node.usages);
        high += std::ranges::max(node.usages);
      }
    least = std::max(least, low);
    most = std::max(most, high);
  }
  const double room = form.room * static_cast<double>(most - least);
  problem.usage_limit = std::max<int64_t>(least + static_cast<int64_t>(room), 0);
  return problem;
}

}  // namespace hone::tested
