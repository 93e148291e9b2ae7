// How good the price of several processors is on one that it has not seen, for families of programs
// that it has not seen, and for both (docs/learned-prices.md).
//   --sets=A,B,C   data sets of several processors; without it these rows are left out
//   --on=D,E       sets of processors that no model learns from; else each is left out in turn
//   --parts=N      of the programs (3)
//   --trees=1      also XGBoost's trees where a processor is left out, which --on names
// "without_target" has networks that see no features of the target. Flags of networks are those of
// the other rows.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "bench/flags.h"
#include "bench/prices/trees.h"
#include "bench/prices/trials.h"
#include "bench/prices/xgboost.h"
#include "kernel/kernel_kind.h"

namespace hone::bench {
namespace {

const Flag kSets("sets", ""), kOn("on", ""), kParts("parts", "3");

Result<std::vector<MeasuredSet>> sets_of(const Flag& flag) {
  std::vector<MeasuredSet> sets;
  if (flag.text().empty()) return sets;
  for (std::string_view folder : split(flag.text(), ','))
    sets.push_back(measured_set(HONE_TRY(load_kernel_data(std::string(folder)))));
  return sets;
}

const Result<LeftOutTrials>& left_out(bool knows_targets) {
  static std::optional<Result<LeftOutTrials>> all[2];
  std::optional<Result<LeftOutTrials>>& known = all[knows_targets ? 1 : 0];
  if (known) return *known;
  const auto made = [&]() -> Result<LeftOutTrials> {
    ModelTraining options = training();
    options.knows_targets = knows_targets;
    return left_out_trials(HONE_TRY(sets_of(kSets)),
                           HONE_TRY(sets_of(kOn)), static_cast<size_t>(kParts.number()),
                           options);
  };
  known = made();
  return *known;
}

void report(benchmark::State& state, std::vector<PriceTrial> LeftOutTrials::* which,
            bool knows_targets, std::string_view kind) {
  const Result<LeftOutTrials>& trials = left_out(knows_targets);
  if (!trials.ok()) return state.SkipWithError(trials.error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  double kernels = 0;
  for (const auto& [name, verdicts] : {std::pair("analytic", &PriceTrial::plain),
                                       {"fitted", &PriceTrial::fitted},
                                       {"learned", &PriceTrial::learned},
                                       {"chosen", &PriceTrial::chosen}}) {
    std::vector<KernelVerdict> all;  // each kernel counts alike
    for (const PriceTrial& trial : (*trials).*which)
      all.insert(all.end(), (trial.*verdicts).begin(), (trial.*verdicts).end());
    const MeanVerdict mean = mean_of(all, kind);
    kernels = static_cast<double>(mean.kernels);
    if (mean.kernels == 0) continue;
    state.counters[fmt::format("tau_{}", name)] = mean.tau;
    state.counters[fmt::format("top1_{}", name)] = mean.top1;
    state.counters[fmt::format("error_{}", name)] = mean.error;
  }
  state.counters["kernels"] = kernels;
}

// Trees that learn the order of all sets' schedules, with the coefficients that networks have.
Result<MeanVerdict> trees_abroad() {
  HONE_TRY(check_xgboost());
  const std::vector<MeasuredSet> sets = HONE_TRY(sets_of(kSets)), on = HONE_TRY(sets_of(kOn));
  const Prices prices;
  std::vector<DescribedKernel> known;
  for (const MeasuredSet& set : sets)
    for (const KernelSample& kernel : set.kernels)
      known.push_back(describe(kernel, set.target, set.threads, prices));
  const TreeResiduals trees =
      HONE_TRY(train_xgboost(known, {.learn = TreesLearn::order, .rounds = 300}));
  std::vector<KernelVerdict> verdicts;
  for (const MeasuredSet& set : on)
    for (const KernelSample& kernel : set.kernels) {
      const DescribedKernel described = describe(kernel, set.target, set.threads, prices);
      std::vector<double> said = HONE_TRY(trees(described.features));
      for (size_t i = 0; i < said.size(); ++i)
        said[i] = std::exp(said[i] + static_cast<double>(described.analytic[i]));
      verdicts.push_back(verdict_of(kernel, said));
    }
  return mean_of(verdicts);
}

void report_trees(benchmark::State& state) {
  const Result<MeanVerdict> mean = trees_abroad();
  if (!mean.ok()) return state.SkipWithError(mean.error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  state.counters["tau_xgboost"] = mean->tau;
  state.counters["top1_xgboost"] = mean->top1;
  state.counters["kernels"] = static_cast<double>(mean->kernels);
}

const Rows kRows([] {
  if (kSets.text().empty()) return;
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Iterations(1)->UseManualTime();
  };
  for (const bool knows_targets : {true, false})
    for (const auto& [name, which] : {std::pair("processor", &LeftOutTrials::processor),
                                      {"family", &LeftOutTrials::family},
                                      {"both", &LeftOutTrials::both}}) {
      const std::string row =
          fmt::format("held_out/{}{}", name, knows_targets ? "" : "/without_target");
      add(row + "/all", [=](auto& state) { report(state, which, knows_targets, ""); });
      if (!knows_targets) continue;
      for (std::string_view kind : kKernelKinds)
        add(fmt::format("{}/{}", row, kind),
            [=](auto& state) { report(state, which, true, kind); });
    }
  if (asks_for_trees() && !kOn.text().empty()) add("held_out/processor/trees", report_trees);
});

}  // namespace
}  // namespace hone::bench
