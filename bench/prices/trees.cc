#include "bench/prices/trees.h"

#include <cmath>
#include <ctime>

#include "bench/flags.h"
#include "bench/prices/trials.h"
#include "bench/prices/xgboost.h"

namespace hone::bench {
namespace {

const Flag kTrees("trees", "0"), kRounds("rounds", "300"), kDepth("depth", "6"), kEta("eta", "0.1");

using Described = std::vector<DescribedKernel>;
Described described(std::span<const KernelSample> kernels, const KernelData& data,
                    const Prices& prices) {
  Described all;
  for (const KernelSample& kernel : kernels)
    all.push_back(describe(kernel, data.target, data.threads, prices));
  return all;
}

// The analytic price, corrected by residuals if there are some.
std::vector<KernelVerdict> verdicts_by(std::span<const KernelSample> kernels, const Described& all,
                                       std::span<const std::vector<double>> residuals = {}) {
  std::vector<KernelVerdict> verdicts;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<double> prices(all[k].analytic.begin(), all[k].analytic.end());
    for (size_t i = 0; i < prices.size(); ++i)
      prices[i] = std::exp(prices[i] + (residuals.empty() ? 0 : residuals[k][i]));
    verdicts.push_back(verdict_of(kernels[k], prices));
  }
  return verdicts;
}

// Residuals of the kernels to test. The machine may be busy, so that time of the core counts.
Result<std::vector<std::vector<double>>> learned(const Described& train, const Described& test,
                                                 TreesLearn learn, std::vector<double>& seconds) {
  const std::clock_t began = std::clock();
  const TreeResiduals trees =
      HONE_TRY(train_xgboost(train, {.learn = learn,
                                     .rounds = static_cast<int64_t>(kRounds.number()),
                                     .depth = static_cast<int64_t>(kDepth.number()),
                                     .eta = kEta.number()}));
  seconds.push_back(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  std::vector<std::vector<double>> residuals;
  for (const DescribedKernel& kernel : test) residuals.push_back(HONE_TRY(trees(kernel.features)));
  return residuals;
}

Status add_trial(const KernelData& data, const ProgramSplit& split, TreesTrials& trials) {
  std::vector<KernelSample> known = part(data, split, Part::train);
  for (KernelSample& kernel : part(data, split, Part::validation))
    known.push_back(std::move(kernel));
  const std::vector<KernelSample> unseen = part(data, split, Part::test);
  const Prices prices = fitted_prices(known, data.target, data.threads).prices;
  const Described train = described(known, data, prices), test = described(unseen, data, prices);
  const auto order = HONE_TRY(learned(train, test, TreesLearn::order, trials.order_seconds));
  const auto squared = HONE_TRY(learned(train, test, TreesLearn::time, trials.squared_seconds));
  trials.fitted.push_back(verdicts_by(unseen, test));
  trials.order.push_back(verdicts_by(unseen, test, order));
  trials.squared.push_back(verdicts_by(unseen, test, squared));
  return {};
}

Result<TreesTrials> all_trials() {
  HONE_TRY(check_xgboost());
  const KernelData data = HONE_TRY(kernel_data());
  TreesTrials trials;
  for (const ProgramSplit& split : HONE_TRY(splits_of(data)))
    HONE_TRY(add_trial(thinned(data, split), split, trials));
  return trials;
}

}  // namespace

bool asks_for_trees() { return kTrees.number() != 0; }

const Result<TreesTrials>& trees_trials() {
  static const Result<TreesTrials> all = all_trials();
  return all;
}

}  // namespace hone::bench
