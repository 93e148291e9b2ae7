#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "assign/core_state.h"
#include "base/error.h"
#include "base/rng.h"

namespace hone {

// A way to look for solutions of a core, step by step: rows of searches.def. All have the same
// state, which knows what a change of a node's option comes to, and the same bound beside them. A
// change, the way back to the best and a better best take time for the nodes that change, and none
// for the others.
class CoreSearch {
 public:
  CoreSearch(const Core& core, const CoreTables& tables, uint64_t seed)
      : core_(core), rng_(seed), state_(core, tables) {}
  virtual ~CoreSearch() = default;

  // Goes on from these options.
  virtual void start(std::vector<uint32_t> options);
  // The bound's prices of usage, what options cost with them, and those that look best then.
  virtual void set_prices(const std::vector<double>& /*prices*/,
                          std::vector<std::vector<double>> /*costs*/,
                          std::vector<uint32_t> /*picks*/) {}
  // A little work, about 0.2 ms on a core of any size.
  virtual void step() = 0;

  // The best so far. It fits if no time is too full.
  const std::vector<uint32_t>& best() const { return best_; }
  double best_cost() const { return best_cost_; }
  int64_t best_full_times() const { return best_full_; }

 protected:
  void take(uint32_t node, uint32_t option);
  void keep_best();  // if the state is better
  void go_back();    // to the best

  const Core& core_;
  Rng rng_;
  CoreState state_;

 private:
  std::vector<uint32_t> best_;
  double best_cost_ = kNever;
  int64_t best_full_ = 0;
  std::vector<uint32_t> changed_;  // nodes that may differ from the best
  std::vector<bool> is_changed_;   // by node
};

struct CoreSearchRow {
  std::string_view name;
  std::string_view doc;
  std::unique_ptr<CoreSearch> (*make)(const Core& core, const CoreTables& tables, uint64_t seed);
};
// The first one is what is taken if nobody names one.
std::span<const CoreSearchRow> core_searches();
// An unknown name is refused with the list of what there is.
Result<const CoreSearchRow*> find_core_search(std::string_view name);

}  // namespace hone
