#pragma once

#include <limits>
#include <vector>

#include "assign/core.h"

namespace hone {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Rows have as many reals as there are options, and some more that are kNever, such that loops over
// them take whole vectors.
constexpr size_t row_length(size_t options) { return (options + 3) / 4 * 4; }

// The costs of a core's edges as reals, for loops over the options of either node. Equal tables,
// those of repeated blocks, are stored once: so more of them stay in the cache.
class CoreTables {
 public:
  explicit CoreTables(const Core& core);

  // The cost of a forbidden pair here: more than all that is allowed together.
  double forbidden() const { return forbidden_; }

  // A row of costs for each option of `node`, one of the edge's two; of row_length() reals each.
  const double* rows(uint32_t edge, uint32_t node) const {
    const Sides& sides = of_edge_[edge];
    return node == sides.first ? sides.by_first : sides.by_second;
  }

 private:
  struct Sides {
    uint32_t first;
    const double* by_first;
    const double* by_second;
  };
  double forbidden_ = 1;
  std::vector<Sides> of_edge_;
  std::vector<std::vector<double>> stored_;
};

}  // namespace hone
