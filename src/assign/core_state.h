#pragma once

#include <vector>

#include "assign/core_tables.h"

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

}  // namespace hone
