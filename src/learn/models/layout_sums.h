#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "learn/configured_graph.h"

namespace hone {

// What layouts cost in one graph, learned from some of its assignments: the logarithm of the time
// is a sum of one number for each layout that a configurable node was seen with. It takes few
// measurements, a millisecond, and knows no other graph.
//
//   const LayoutSums sums(measured);
//   sums.scores(others);  // assignments of the same graph; lower is faster
class LayoutSums {
 public:
  // Equal assignments count once, with their mean time.
  explicit LayoutSums(const ConfiguredGraph& measured);

  // A layout that a node was never seen with adds nothing.
  std::vector<double> scores(const ConfiguredGraph& graph) const;

 private:
  using Places = std::vector<size_t>;  // in numbers_, of an assignment
  // By configurable node: where each layout, the columns of its row, has its number.
  std::vector<std::map<std::vector<float>, size_t>> places_;
  std::vector<double> numbers_;

  std::vector<float> layout(const ConfiguredGraph& graph, size_t config, size_t node) const;
  void fit(const std::vector<Places>& assignments, std::vector<double> right);
};

}  // namespace hone
