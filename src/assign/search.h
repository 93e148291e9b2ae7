#pragma once

#include <vector>

#include "assign/core_tables.h"
#include "assign/window.h"
#include "base/rng.h"

namespace hone {

// A solution of a core that changes: its options, and how much of each time's slack is free.
class CoreState {
 public:
  CoreState(const Core& core, const CoreTables& tables);

  void set(std::vector<uint32_t> options);
  const std::vector<uint32_t>& options() const { return options_; }
  double cost() const { return cost_; }  // without the core's constant
  // One for each time. They are whole numbers, and exact; negative where the limit is passed.
  const std::vector<double>& free() const { return free_; }
  int64_t full_times() const { return full_times_; }  // at which the limit is passed

  // The cost of one unit above the limit, by time.
  void set_penalties(std::vector<double> penalties);
  const std::vector<double>& penalties() const { return penalties_; }
  double penalty() const { return penalty_; }  // of all times

  void take(uint32_t node, uint32_t option);

 private:
  double change_of_cost(uint32_t node, uint32_t option) const;

  const Core& core_;
  const CoreTables& tables_;
  std::vector<uint32_t> options_;
  std::vector<double> free_;
  std::vector<double> penalties_;
  double cost_ = 0;
  double penalty_ = 0;
  int64_t full_times_ = 0;
};

// Looks for better solutions of a core by large neighbourhoods: the best options of a window of
// nodes at once, at the prices of the bound. Rounds begin at the best solution so far. At first the
// limits may be passed for a penalty, which grows. Then they may not, and usage that is free is
// spent, as its price goes to zero.
class AssignSearch {
 public:
  AssignSearch(const Core& core, const CoreTables& tables, uint64_t seed);

  // Begins a round at these options.
  void start(std::vector<uint32_t> options);
  // Prices of usage, what options cost with them, and those that look best then, at which some of
  // the next rounds begin.
  void set_prices(const std::vector<double>& prices, std::vector<std::vector<double>> costs,
                  std::vector<uint32_t> picks);
  void step();  // one window

  // The best so far. It fits if no time is too full.
  const std::vector<uint32_t>& best() const { return best_; }
  double best_cost() const { return best_cost_; }
  int64_t best_full_times() const { return best_full_; }

 private:
  void begin_round();
  void begin_stage();
  void choose_window();
  void grow_by_edges(uint32_t from, size_t size);
  void grow_by_time(uint32_t time, size_t size);
  void enter(uint32_t node);
  bool try_window();
  double judged() const;
  void price_window();
  void price_times(double gain);
  void keep_best();

  const Core& core_;
  Rng rng_;
  Window window_;
  CoreState state_;
  std::vector<uint32_t> best_;
  double best_cost_ = kNever;
  int64_t best_full_ = 0;
  std::vector<double> prices_;
  std::vector<uint32_t> picks_;
  std::vector<std::vector<double>> paid_;   // of options: what their usage costs at the prices
  std::vector<std::vector<double>> costs_;  // of options, as the window sees them
  std::vector<uint32_t> nodes_;             // of the window
  std::vector<uint32_t> before_;            // their options before it
  std::vector<bool> is_in_;                 // by node
  std::vector<double> extra_sums_;          // running sums of prices above prices_, for one window
  std::vector<std::vector<uint32_t>> alive_;  // by time divided by kTimeStep: nodes alive
  double share_ = 1;                          // of the prices, in what a stage judges by
  int64_t round_ = 0;
  int64_t stage_ = 0;       // of the round
  int64_t stage_left_ = 0;  // windows
};

}  // namespace hone
