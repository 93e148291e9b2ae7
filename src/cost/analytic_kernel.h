#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "cost/cost.h"
#include "cost/kernel_price.h"
#include "cost/prices.h"
#include "kernel/stages.h"

namespace hone {

// Prices schedules of all algorithms. Schedules of one kernel share its facts, and chains that cut
// it alike share their stages, so these are found for the first of them and kept.
class AnalyticKernel : public PricedKernel {
 public:
  // `threads` is how many there are at most.
  AnalyticKernel(std::shared_ptr<const KernelFacts> facts, Target target, Prices prices,
                 int64_t threads);

  void price(std::span<const Schedule> schedules, double limit, std::span<double> seconds) override;
  // None of a chain, which costs the sum of its stages.
  std::vector<PriceTerm> terms(const Schedule& schedule) override;

  // The price, and what learned prices know of the schedule. The stages of a chain share features
  // by their shares of the time.
  double describe(const Schedule& schedule, Features& features);
  const Features& of_kernel() const { return whole_.of_kernel(); }
  // Prices by other coefficients from now on. The facts of the kernel and its stages
  // stay.
  void reprice(const Prices& prices);

  // Blocks of one size of a chain. Threads share them, and wait for each other before the blocks of
  // another size begin.
  struct BlockPhase {
    std::array<int64_t, kMaxRank> points = {};  // of a block, by dim of the results
    double blocks = 1;
    double divided = 1;  // those that threads take
  };

 private:
  // Stages are the same, apart from their windows, for chains that keep the same values and take
  // the same dims in blocks. Each window of a stage has a price of its own.
  struct CutStage {
    Stage stage;
    KernelFacts facts;
    std::vector<ValueId> held;                                // of its graph: what stages pass on
    std::map<std::vector<int64_t>, KernelPrice> prices = {};  // by window
  };
  using Cut = std::vector<CutStage>;
  using CutKey = std::pair<std::vector<int64_t>, std::vector<int>>;  // kept; the dims, ascending
  static constexpr size_t kMaxKept = 1024;  // prices of stages, 30 KB each at most

  std::span<const BlockPhase> phases_of(const Schedule& chain);
  double fork_seconds(const Schedule& chain) const;  // of one phase
  double chain_seconds(const Schedule& chain);
  double describe_chain(const Schedule& chain, Features& features);
  Cut& cut_of(const Schedule& chain);
  double block_seconds(Cut& cut, const Schedule& chain, const BlockPhase& phase);
  const KernelPrice& stage_price(CutStage& stage, const BlockPhase& phase);

  const std::shared_ptr<const KernelFacts> facts_;
  const Target target_;
  Prices prices_;
  const int64_t threads_;
  KernelPrice whole_;  // of nests and gemms
  std::map<CutKey, Cut> cuts_;
  size_t kept_ = 0;  // prices in them
  // About the last chain, and the window of its last stage. Their memory is reused, so that pricing
  // a schedule allocates none.
  CutKey key_;
  std::vector<BlockPhase> phases_, finer_;
  std::vector<int64_t> window_;
};

}  // namespace hone
