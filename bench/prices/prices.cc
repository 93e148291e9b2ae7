// How good learned prices are (docs/learned-prices.md): for kernels of programs that training has
// not seen, by kind, beside the analytic price as it is and fitted to the same kernels, how soon a
// tuner measures the fastest (replay.cc), how many schedules a second are scored; and what the
// plans of a model gain over those of the analytic price, in turns, for programs that it has not
// seen (zero_shot.cc). Further, what its parts are worth (ablations.cc), how it is where a
// processor is left out (held_out.cc), how fast default plans are here (plans.cc), and how long
// planning takes (planning.cc).
//   --data=FOLDER     a data set, as of `hone dataset build` (build/bench/kernels)
//   --splits=N        of programs, at random (5)
//   --members=N --epochs=N --width1=N --width2=N --rate=X --slate=N --seed=N
//   --loss=mixed|rank|log_squared --unit=X --squared=X --absolute=X --dropout=X --jitter=X
//   --fits=0|1 --caution=X
//   --trees=1         also trees/...: XGBoost's trees on the same features, in place of the
//                     networks, by one thread. "xgboost" learns the order of each kernel's
//                     schedules (rank:pairwise), so its errors mean nothing; "xgboost_squared"
//                     learns the logarithms of times (reg:squarederror). Needs libxgboost-dev
//   --rounds=N --depth=N --eta=X  of these trees
//   --start_data=FOLDER  networks begin with those of a model of this set, of another target, which
//                     has not seen the programs of the test either
//   --share=X         of the kernels that there are to train on, so many at random (1)
//   --zero_shot=A,B   models of the zoo to plan for, which a split has to test
//   --seconds=S       of a pair of plans (6)
//   --tuned=S         also what tuning for so long gains, by the formula alone (0: do not); and
//                     what part of its gains over 3 % the plans above have without measuring
//   --dissimilar=0    without training on convs to judge by the others, and the reverse
// "chosen" is the regret of what the planner takes of the schedules: the first by the formula,
// unless the first by the learned price leads.
// Of training on convs to judge by the others, and the reverse, "worst" is the program that takes
// most times as long by the learned price as by the fitted one (worst_program()), "worst_chosen" by
// what the planner takes, "worst_to_plain" by that and the formula as it is.
// "free" is the learned price for all kernels, whether the model knows them or not.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <functional>

#include "bench/flags.h"
#include "bench/prices/trees.h"
#include "bench/prices/trials.h"
#include "cost/fast_model.h"
#include "cost/learned_cost.h"
#include "kernel/kernel_kind.h"
#include "learn/models/kernel_network.h"

namespace hone::bench {
namespace {

using Verdicts = std::vector<KernelVerdict> PriceTrial::*;
constexpr std::pair<std::string_view, Verdicts> kPrices[] = {{"plain", &PriceTrial::plain},
                                                             {"fitted", &PriceTrial::fitted},
                                                             {"learned", &PriceTrial::learned},
                                                             {"again", &PriceTrial::again}};

// Means over trials of some prices' verdicts, of those that have a kernel of the kind.
void tell(benchmark::State& state, std::string_view kind, std::string_view name,
          const std::function<const std::vector<KernelVerdict>&(size_t)>& verdicts_of,
          size_t count) {
  std::vector<double> tau, top1, top5, error, planned;
  double kernels = 0;
  for (size_t t = 0; t < count; ++t) {
    const MeanVerdict mean = mean_of(verdicts_of(t), kind);
    if (mean.kernels == 0) continue;
    kernels += static_cast<double>(mean.kernels);
    tau.push_back(mean.tau);
    top1.push_back(mean.top1);
    top5.push_back(mean.top5);
    error.push_back(mean.error);
    planned.push_back(mean.planned);
  }
  if (kernels == 0) return;
  for (const auto& [what, values] : {std::pair("tau", &tau),
                                     {"top1", &top1},
                                     {"top5", &top5},
                                     {"error", &error},
                                     {"planned", &planned}}) {
    const MeanInterval interval = interval_of(*values);
    state.counters[fmt::format("{}_{}", what, name)] = interval.mean;
    if (kind.empty()) state.counters[fmt::format("{}_{}_half", what, name)] = interval.half;
  }
  state.counters["kernels"] = kernels;
}

void report(benchmark::State& state, std::string_view kind) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  const Trials& all = *trials();
  const size_t count = all.unseen.size();
  for (const auto& [name, verdicts] : kPrices)
    tell(
        state, kind, name, [&](size_t t) -> const auto& { return all.unseen[t].*verdicts; }, count);
  tell(state, kind, "free", [&](size_t t) -> const auto& { return all.free[t]; }, count);
}

void report_trees(benchmark::State& state, std::string_view kind) {
  const Result<TreesTrials>& trees = trees_trials();
  if (!trees.ok()) return state.SkipWithError(trees.error().what().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  for (const auto& [name, all] : {std::pair("fitted", &trees->fitted),
                                  {"xgboost", &trees->order},
                                  {"xgboost_squared", &trees->squared}})
    tell(state, kind, name, [&](size_t t) -> const auto& { return (*all)[t]; }, all->size());
  if (!kind.empty()) return;
  state.counters["train_s_xgboost"] = interval_of(trees->order_seconds).mean;
  state.counters["train_s_xgboost_squared"] = interval_of(trees->squared_seconds).mean;
}

void report_trust(benchmark::State& state) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  std::vector<double> holds, width, known, chosen, seconds;
  for (const PriceTrial& trial : trials()->unseen) {
    if (trial.bounded > 0) {
      holds.push_back(trial.bound_holds);
      width.push_back(trial.bound);
    }
    known.push_back(trial.known);
    chosen.push_back(mean_of(trial.chosen).top1);
    seconds.push_back(trial.seconds);
  }
  state.counters["holds"] = interval_of(holds).mean;
  state.counters["holds_half"] = interval_of(holds).half;
  state.counters["bound"] = interval_of(width).mean;
  state.counters["known"] = interval_of(known).mean;
  state.counters["chosen"] = interval_of(chosen).mean;
  state.counters["chosen_half"] = interval_of(chosen).half;
  state.counters["train_s"] = interval_of(seconds).mean;
}

void report_dissimilar(benchmark::State& state, size_t which) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  if (which >= trials()->dissimilar.size()) return;
  const PriceTrial& trial = trials()->dissimilar[which].second;
  for (const auto& [name, verdicts] : kPrices) {
    const MeanVerdict mean = mean_of(trial.*verdicts);
    state.counters[fmt::format("tau_{}", name)] = mean.tau;
    state.counters[fmt::format("top1_{}", name)] = mean.top1;
    state.counters[fmt::format("top5_{}", name)] = mean.top5;
    state.counters["kernels"] = static_cast<double>(mean.kernels);
  }
  state.counters["known"] = trial.known;
  state.counters["chosen"] = mean_of(trial.chosen).top1;
  state.counters["worst"] = worst_program(trial.learned, trial.fitted);
  state.counters["worst_chosen"] = worst_program(trial.chosen, trial.fitted);
  state.counters["worst_to_plain"] = worst_program(trial.chosen, trial.plain);
}

// ---- Speed --------------------------------------------------------------------------------------

// Schedules of a kernel of the data, by a Cost, so often before those of the next one. A search has
// just made the schedules that it asks about; where each is asked about once, bringing all of them
// from memory takes as long as pricing them.
void score(benchmark::State& state, bool is_learned, int times) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  const KernelData& data = trials()->data;
  const KernelModel& model = trials()->unseen[0].model;
  const AnalyticCost analytic(data.target, model.prices);
  const LearnedCost learned(data.target, std::make_shared<const KernelModel>(model));
  const Cost& cost = is_learned ? static_cast<const Cost&>(learned) : analytic;
  struct Scored {
    std::unique_ptr<PricedKernel> kernel;
    const KernelSample* sample;
    std::vector<double> seconds;
  };
  std::vector<Scored> all;
  for (const KernelSample& kernel : data.kernels)
    if (learned.check_knows(*kernel.timed.facts, data.threads).ok())
      all.push_back({cost.kernel(kernel.timed.facts, data.threads), &kernel,
                     std::vector<double>(kernel.timed.seconds.size())});
  int64_t scored = 0;
  for (auto _ : state)
    for (size_t i = 0; i < all.size() * static_cast<size_t>(times); ++i) {
      Scored& each = all[i / static_cast<size_t>(times)];
      each.kernel->price(each.sample->timed.schedules, std::numeric_limits<double>::infinity(),
                         each.seconds);
      scored += std::ssize(each.seconds);
    }
  state.SetItemsProcessed(scored);
}

// The networks alone, of features that are there: without the formula that they come out of.
void score_features(benchmark::State& state) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  const KernelData& data = trials()->data;
  const KernelModel& model = trials()->unseen[0].model;
  const FastModel fast(model);
  std::vector<std::vector<Features>> all;
  for (const KernelSample& kernel : data.kernels)
    all.push_back(describe(kernel, data.target, data.threads, model.prices).features);
  std::vector<FastModel::Said> said;
  int64_t scored = 0;
  for (auto _ : state)
    for (const std::vector<Features>& features : all) {
      said.resize(features.size());
      fast.run(features, said);
      benchmark::DoNotOptimize(said.data());
      scored += std::ssize(features);
    }
  state.SetItemsProcessed(scored);
}

const int registered = [] {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Iterations(1)->UseManualTime();
  };
  for (std::string_view kind : kKernelKinds)
    add(fmt::format("unseen/{}", kind), [kind](benchmark::State& state) { report(state, kind); });
  add("unseen/all", [](benchmark::State& state) { report(state, ""); });
  add("trust", [](benchmark::State& state) { report_trust(state); });
  add("convs_to_others", [](benchmark::State& state) { report_dissimilar(state, 0); });
  add("others_to_convs", [](benchmark::State& state) { report_dissimilar(state, 1); });
  benchmark::RegisterBenchmark("scores/networks", score_features);
  for (int times : {1, 16}) {
    const std::string often = times == 1 ? "once" : fmt::format("{} times", times);
    benchmark::RegisterBenchmark(("scores/analytic/" + often).c_str(),
                                 [times](auto& state) { score(state, false, times); });
    benchmark::RegisterBenchmark(("scores/learned/" + often).c_str(),
                                 [times](auto& state) { score(state, true, times); });
  }
  return 0;
}();

const Rows kTreesRows([] {
  if (!asks_for_trees()) return;
  const auto add = [](std::string_view name, std::string_view kind) {
    benchmark::RegisterBenchmark(fmt::format("trees/{}", name).c_str(),
                                 [kind](benchmark::State& state) { report_trees(state, kind); })
        ->Iterations(1)
        ->UseManualTime();
  };
  for (std::string_view kind : kKernelKinds) add(kind, kind);
  add("all", "");
});

}  // namespace
}  // namespace hone::bench
