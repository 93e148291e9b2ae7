#pragma once

#include <vector>

#include "assign/core_search.h"
#include "assign/window.h"

namespace hone {

// Looks for better solutions of a core by large neighbourhoods: the best options of a window of
// nodes at once, at the prices of the bound. Rounds begin at the best solution so far. At first the
// limits may be passed for a penalty, which grows. Then they may not, and usage that is free is
// spent, as its price goes to zero.
class WindowSearch : public CoreSearch {
 public:
  WindowSearch(const Core& core, const CoreTables& tables, uint64_t seed);

  // Begins a round at these options.
  void start(std::vector<uint32_t> options) override;
  void set_prices(const std::vector<double>& prices, std::vector<std::vector<double>> costs,
                  std::vector<uint32_t> picks) override;
  void step() override;  // one window

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

  Window window_;
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
