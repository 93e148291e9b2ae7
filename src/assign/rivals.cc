#include <algorithm>
#include <cmath>
#include <numeric>

#include "assign/core_search.h"
#include "assign/walk.h"

// Searches that change one option at a time. They are what the search by windows has to beat.

namespace hone {
namespace {

// Usage above the limit costs more and more, until no time is too full, and then less and less.
class PenaltySearch : public CoreSearch {
 public:
  using CoreSearch::CoreSearch;

  void start(std::vector<uint32_t> options) override {
    CoreSearch::start(std::move(options));
    double room = 1;
    for (const double free : state_.free()) room += std::abs(free);
    least_ = penalty_ = (1 + std::abs(state_.cost())) / room;
    set_penalty();
  }

  void step() final {
    work();
    const double before = penalty_;
    penalty_ = state_.full_times() > 0 ? 1.3 * penalty_ : std::max(least_, penalty_ / 1.1);
    // Above it no cost is worth a unit of usage.
    penalty_ = std::min(penalty_, 1e6 * least_);
    if (penalty_ != before) set_penalty();
  }

 protected:
  virtual void work() = 0;
  double judged() const { return state_.cost() + state_.penalty(); }

 private:
  void set_penalty() { state_.set_penalties(std::vector<double>(core_.slack.size(), penalty_)); }

  double least_ = 1, penalty_ = 1;  // of a unit above the limit
};

// As FlexFlow looks for shardings (Jia, Zaharia, Aiken 2019): any node takes any option.
class ChainSearch : public PenaltySearch {
 public:
  ChainSearch(const Core& core, const CoreTables& tables, uint64_t seed)
      : PenaltySearch(core, tables, seed) {
    for (uint32_t i = 0; i < core.nodes.size(); ++i)
      if (core.nodes[i].options() > 1) movable_.push_back(i);
  }

  // ---- A walker (walk.h) ----
  bool move(Rng& rng) {
    node_ = rng.pick(movable_);
    before_ = state_.options()[node_];
    const auto other = static_cast<uint32_t>(rng.below(core_.nodes[node_].options() - 1));
    state_.take(node_, other + (other >= before_ ? 1 : 0));
    return true;
  }
  void undo() { state_.take(node_, before_); }
  void keep() { keep_best(); }
  void back_to_best() { state_.set(best()); }
  double rank() const { return judged(); }
  double scale() const { return 1 + std::abs(best_cost()); }

 private:
  void work() override {
    constexpr int kMoves = 256;
    for (int i = 0; i < kMoves && !movable_.empty(); ++i) chain_.step(*this, rng_);
  }

  std::vector<uint32_t> movable_;
  MarkovChain chain_;
  uint32_t node_ = 0, before_ = 0;  // of the last move
};

class GreedySearch : public PenaltySearch {
 public:
  GreedySearch(const Core& core, const CoreTables& tables, uint64_t seed)
      : PenaltySearch(core, tables, seed), order_(core.nodes.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

 private:
  void work() override {
    constexpr int kNodes = 64;
    for (int i = 0; i < kNodes && !order_.empty(); ++i) {
      // All have been asked, and none had a better option.
      if (idle_ >= order_.size()) kick();
      if (at_ == 0) rng_.shuffle(order_);
      idle_ = improve(order_[at_]) ? 0 : idle_ + 1;
      at_ = (at_ + 1) % order_.size();
      keep_best();
    }
  }

  bool improve(uint32_t node) {
    const uint32_t before = state_.options()[node];
    uint32_t best = before;
    double least = judged();
    for (uint32_t option = 0; option < core_.nodes[node].options(); ++option) {
      if (option == before) continue;
      state_.take(node, option);
      if (judged() >= least) continue;
      least = judged();
      best = option;
    }
    if (state_.options()[node] != best) state_.take(node, best);
    return best != before;
  }

  // Some nodes of the best take other options.
  void kick() {
    idle_ = 0;
    state_.set(best());
    constexpr size_t kMostShare = 20;  // one in 20
    for (size_t left = 1 + rng_.below(2 + order_.size() / kMostShare); left > 0; --left) {
      const uint32_t node = rng_.pick(order_);
      state_.take(node, static_cast<uint32_t>(rng_.below(core_.nodes[node].options())));
    }
  }

  std::vector<uint32_t> order_;
  size_t at_ = 0, idle_ = 0;  // in the order; nodes in turn that kept their option
};

class RandomOptions : public CoreSearch {
 public:
  using CoreSearch::CoreSearch;
  void step() override {
    std::vector<uint32_t> options;
    for (const CoreNode& node : core_.nodes)
      options.push_back(static_cast<uint32_t>(rng_.below(node.options())));
    start(std::move(options));
  }
};

}  // namespace

std::unique_ptr<CoreSearch> make_chain_search(const Core& core, const CoreTables& tables,
                                              uint64_t seed) {
  return std::make_unique<ChainSearch>(core, tables, seed);
}
std::unique_ptr<CoreSearch> make_greedy_search(const Core& core, const CoreTables& tables,
                                               uint64_t seed) {
  return std::make_unique<GreedySearch>(core, tables, seed);
}
std::unique_ptr<CoreSearch> make_random_search(const Core& core, const CoreTables& tables,
                                               uint64_t seed) {
  return std::make_unique<RandomOptions>(core, tables, seed);
}

}  // namespace hone
