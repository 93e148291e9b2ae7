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
  PenaltySearch(const Core& core, const CoreTables& tables, uint64_t seed)
      : CoreSearch(core, tables, seed),
        steps_to_penalty_(1 + static_cast<int64_t>(core.slack.size()) / kTimesOfStep) {}

  void start(std::vector<uint32_t> options) override {
    CoreSearch::start(std::move(options));
    double room = 1;
    for (const double free : state_.free()) room += std::abs(free);
    least_ = penalty_ = (1 + std::abs(state_.cost())) / room;
    set_penalty();
  }

  void step() final {
    work();
    if (++steps_ % steps_to_penalty_ != 0) return;
    const double before = penalty_;
    penalty_ = state_.full_times() > 0 ? 1.3 * penalty_ : std::max(least_, penalty_ / 1.1);
    // Above it no cost is worth a unit of usage.
    penalty_ = std::min(penalty_, 1e6 * least_);
    if (penalty_ != before) set_penalty();
  }

 protected:
  virtual void work() = 0;
  double judged() const { return state_.cost() + state_.penalty(); }
  double penalty() const { return penalty_; }

 private:
  static constexpr int64_t kTimesOfStep = 20'000;  // that get a new penalty in the time of a step

  void set_penalty() { state_.set_penalties(std::vector<double>(core_.slack.size(), penalty_)); }

  const int64_t steps_to_penalty_;
  int64_t steps_ = 0;
  double least_ = 1, penalty_ = 1;  // of a unit above the limit
};

// As FlexFlow looks for shardings (Jia, Zaharia, Aiken 2019), but on the sum of the costs, and not
// on a simulated step: any node takes any option.
class ChainSearch : public PenaltySearch {
 public:
  ChainSearch(const Core& core, const CoreTables& tables, uint64_t seed)
      : PenaltySearch(core, tables, seed),
        chain_(kHeat, std::max<int64_t>(1000, 4 * std::ssize(core.nodes))) {
    for (uint32_t i = 0; i < core.nodes.size(); ++i)
      if (core.nodes[i].options() > 1) movable_.push_back(i);
  }

  // ---- A walker (walk.h) ----
  bool move(Rng& rng) {
    node_ = rng.pick(movable_);
    before_ = state_.options()[node_];
    const double judged_before = judged();
    const auto other = static_cast<uint32_t>(rng.below(core_.nodes[node_].options() - 1));
    take(node_, other + (other >= before_ ? 1 : 0));
    learn(std::abs(judged() - judged_before));
    return true;
  }
  void undo() { take(node_, before_); }
  void keep() { keep_best(); }
  void back_to_best() { go_back(); }
  double rank() const { return judged(); }
  // About the median of what a move changes: a few forbidden pairs do not count much.
  double scale() const { return usual_; }

 private:
  static constexpr double kHeat = 0.5;

  void learn(double change) {
    if (change == 0) return;
    if (usual_ == 0) usual_ = change;
    usual_ *= change > usual_ ? 1.01 : 1 / 1.01;
  }

  void work() override {
    constexpr int kMoves = 256;
    for (int i = 0; i < kMoves && !movable_.empty(); ++i) chain_.step(*this, rng_);
  }

  std::vector<uint32_t> movable_;
  MarkovChain chain_;
  uint32_t node_ = 0, before_ = 0;  // of the last move
  double usual_ = 0;
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
      if (at_ == 0) begin_pass();
      if (improve(order_[at_])) has_improved_ = true;
      at_ = (at_ + 1) % order_.size();
      keep_best();
    }
  }

  // If all were asked at one penalty, and none had a better option, some change at random. So they
  // do if penalties go up and down without an end.
  void begin_pass() {
    constexpr int kMostPasses = 100;
    const bool is_settled = !has_improved_ && pass_penalty_ == penalty();
    if (is_settled || ++passes_ == kMostPasses) {
      kick();
      passes_ = 0;
    }
    rng_.shuffle(order_);
    has_improved_ = false;
    pass_penalty_ = penalty();
  }

  bool improve(uint32_t node) {
    const uint32_t before = state_.options()[node];
    uint32_t best = before;
    double least = judged();
    for (uint32_t option = 0; option < core_.nodes[node].options(); ++option) {
      if (option == before) continue;
      take(node, option);
      if (judged() >= least) continue;
      least = judged();
      best = option;
    }
    if (state_.options()[node] != best) take(node, best);
    return best != before;
  }

  // Some nodes of the best take other options.
  void kick() {
    go_back();
    constexpr size_t kMostShare = 20;  // one in 20
    for (size_t left = 1 + rng_.below(2 + order_.size() / kMostShare); left > 0; --left) {
      const uint32_t node = rng_.pick(order_);
      take(node, static_cast<uint32_t>(rng_.below(core_.nodes[node].options())));
    }
  }

  std::vector<uint32_t> order_;
  size_t at_ = 0;             // in the order
  bool has_improved_ = true;  // in this pass, which began at a penalty
  double pass_penalty_ = 0;
  int passes_ = 0;  // since the last kick
};

// Nodes in turn take options that are drawn. After each pass all are drawn anew.
class RandomOptions : public CoreSearch {
 public:
  using CoreSearch::CoreSearch;
  void step() override {
    constexpr int kNodes = 256;
    for (int i = 0; i < kNodes && !core_.nodes.empty(); ++i) {
      take(at_, static_cast<uint32_t>(rng_.below(core_.nodes[at_].options())));
      at_ = (at_ + 1) % static_cast<uint32_t>(core_.nodes.size());
      keep_best();
    }
  }

 private:
  uint32_t at_ = 0;
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
