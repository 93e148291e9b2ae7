#include "assign/core_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/hash.h"

namespace hone {
namespace {

// The largest cost that is not forbidden, by its distance from 0.
double largest_of(const std::vector<int64_t>& costs) {
  double largest = 0;
  for (int64_t cost : costs)
    if (cost < kNeverCost) largest = std::max(largest, std::abs(static_cast<double>(cost)));
  return largest;
}

}  // namespace

CoreTables::CoreTables(const Core& core) {
  struct Stored {
    uint32_t edge;  // the first one that has the table
    Sides sides;
  };
  for (const CoreNode& node : core.nodes) forbidden_ += 2 * largest_of(node.costs);
  for (const CoreEdge& edge : core.edges) forbidden_ += 2 * largest_of(edge.costs);
  const auto real_cost = [&](int64_t cost) {
    return cost >= kNeverCost ? forbidden_ : static_cast<double>(cost);
  };
  std::map<uint64_t, std::vector<Stored>> by_hash;
  of_edge_.reserve(core.edges.size());
  for (uint32_t e = 0; e < core.edges.size(); ++e) {
    const CoreEdge& edge = core.edges[e];
    const size_t rows = core.nodes[edge.first].options(),
                 columns = core.nodes[edge.second].options();
    std::vector<Stored>& alike = by_hash[hash_bytes(std::as_bytes(std::span(edge.costs)), rows)];
    const Stored* found = nullptr;
    for (const Stored& stored : alike)
      if (core.nodes[core.edges[stored.edge].first].options() == rows &&
          core.edges[stored.edge].costs == edge.costs)
        found = &stored;
    if (found == nullptr) {
      const size_t long_row = row_length(columns), long_column = row_length(rows);
      std::vector<double> costs(rows * long_row + columns * long_column, kNever);
      double* const by_first = costs.data();
      double* const by_second = by_first + rows * long_row;
      for (size_t x = 0; x < rows; ++x)
        for (size_t y = 0; y < columns; ++y)
          by_first[x * long_row + y] = by_second[y * long_column + x] =
              real_cost(edge.costs[x * columns + y]);
      stored_.push_back(std::move(costs));
      alike.push_back({e, {edge.first, by_first, by_second}});
      found = &alike.back();
    }
    of_edge_.push_back({edge.first, found->sides.by_first, found->sides.by_second});
  }
}

}  // namespace hone
