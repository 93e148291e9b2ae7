#pragma once

#include <vector>

#include "assign/core_tables.h"

namespace hone {

// A lower bound of the costs of a core, by prices of what is used and messages along edges.
//
// Each time has a price, not negative: an option pays it for what it uses above the slack. So the
// limits may be dropped, and the least cost of what is left is a bound. This is bounded in turn by
// the sum of the least cost of each node and each edge alone, after messages have moved costs
// between an edge and its nodes. On a tree without limits the bound is the least cost.
//
// Sweeps over the nodes, there and back, mend the messages (sequential reweighted message passing,
// Kolmogorov 2015, which for pairs is his TRW-S). Prices follow the usage of the options that look
// best at the moment, a step after each sweep.
class Dual {
 public:
  Dual(const Core& core, const CoreTables& tables);

  // One sweep there and back, and a step of the prices. `known` is the cost of the best solution,
  // without the core's constant, by which the step's length is guessed.
  void improve(double known);

  double value() const { return best_; }  // the best bound so far, rounded
  // A bound that holds: the one of the best prices and messages so far, in whole numbers of 128
  // bits, rounded down, with the core's constant.
  Int128 certified() const;

  const std::vector<double>& prices() const { return best_prices_; }
  // For each node and option: how much more than the bound a solution with it costs at least,
  // roughly.
  const std::vector<std::vector<double>>& marginals() const { return marginals_; }
  // The options that looked best in the last sweep.
  const std::vector<uint32_t>& picks() const { return picks_; }

  // The costs of options with these prices, beside their edges.
  std::vector<std::vector<double>> priced_costs(const std::vector<double>& prices) const;

 private:
  struct Message {
    std::vector<double> to_first, to_second;
  };
  std::vector<double>& message(uint32_t edge, uint32_t node) {
    return node == core_.edges[edge].first ? messages_[edge].to_first : messages_[edge].to_second;
  }

  double sweep(bool is_forward);
  void collect(uint32_t edge, uint32_t node);
  void use(uint32_t node);
  double paid_slack() const;
  void step(double value, double known);

  const Core& core_;
  const CoreTables& tables_;
  std::vector<Message> messages_;
  std::vector<double> prices_;
  std::vector<std::vector<double>> costs_;  // priced
  std::vector<std::vector<double>> marginals_;
  std::vector<uint32_t> picks_;
  std::vector<double> change_;      // of usage, by time: its running sums are the usage
  std::vector<double> mean_usage_;  // above the slack
  double best_ = -kNever;
  std::vector<double> best_prices_;
  std::vector<Message> best_messages_;
  double pace_ = 1;
  int since_best_ = 0;
};

}  // namespace hone
