#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lab/data/configured_graph.h"

namespace hone {

// The costs of layouts in one graph, learned from some of its assignments. The logarithm of the
// time is a sum: one number for each layout that a configurable node was seen with. Where plans
// have prices, a share of the price's logarithm is added. Learning takes few measurements and a
// millisecond, and says nothing of other graphs.
//
//   const LayoutSums sums(measured);
//   sums.scores(others);  // assignments of the same graph; lower is faster
class LayoutSums {
 public:
  // Equal assignments count once, with their mean time. Without prices of all it goes by layouts.
  explicit LayoutSums(const ConfiguredGraph& measured);

  // A layout that a node was never seen with adds nothing.
  std::vector<double> scores(const ConfiguredGraph& graph) const;

 private:
  struct Assignment {
    std::vector<size_t> places;  // in numbers_
    double price = 0;            // as scaled
  };
  // For each configurable node: where each layout, the columns of its row, has its number.
  std::vector<std::map<std::vector<float>, size_t>> places_;
  std::vector<double> numbers_;               // the last one is the share of the price
  double mean_price_ = 0, price_factor_ = 0;  // of logarithms: to a deviation of 1

  double price(const ConfiguredGraph& graph, size_t config) const;
  std::vector<float> layout(const ConfiguredGraph& graph, size_t config, size_t node) const;
  static double sum_of(const Assignment& assignment, std::span<const double> numbers);
  void fit(const std::vector<Assignment>& assignments, const std::vector<double>& right);
};

}  // namespace hone
