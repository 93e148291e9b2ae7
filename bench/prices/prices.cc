// How good learned prices are (docs/learned-prices.md): for kernels of programs that training has
// not seen, by kind, beside the analytic price as it is and fitted to the same kernels, and how
// many schedules a second are scored.
//   --data=FOLDER     a data set, as of `hone dataset build` (build/bench/kernels)
//   --splits=N        of programs, at random (5)
//   --members=N --epochs=N --width1=N --width2=N --rate=X --slate=N --seed=N
//   --loss=mixed|rank|log_squared --unit=X --squared=X --dropout=X --fits=0|1 --caution=X
//   --trees=1         also boosted trees on the same features, in place of the networks
//   --dissimilar=0    without training on convs to judge by the others, and the reverse
// "free" is the learned price for all kernels, whether the model knows them or not.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/rng.h"
#include "bench/flags.h"
#include "bench/prices/trees.h"
#include "cache/compile_cache.h"
#include "cost/analytic_kernel.h"
#include "cost/learned_cost.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "learn/models/judge_prices.h"

namespace hone::bench {
namespace {

const Flag kData("data", "build/bench/kernels"), kSplits("splits", "5"), kMembers("members", "5"),
    kEpochs("epochs", "20"), kWidth1("width1", "32"), kWidth2("width2", "16"),
    kRate("rate", "0.003"), kSlate("slate", "32"), kSeed("seed", "0"), kLoss("loss", "mixed"),
    kUnit("unit", "0.1"), kSquared("squared", "0.3"), kDropout("dropout", "0"), kFits("fits", "1"),
    kDissimilar("dissimilar", "1"), kCaution("caution", "1"), kTrees("trees", "0");

ModelTraining training() {
  ModelTraining options;
  options.members = static_cast<int64_t>(kMembers.number());
  options.epochs = static_cast<int64_t>(kEpochs.number());
  options.network.width1 = static_cast<int64_t>(kWidth1.number());
  options.network.width2 = static_cast<int64_t>(kWidth2.number());
  options.network.loss = kLoss.text() == "rank"          ? ModelLoss::rank
                         : kLoss.text() == "log_squared" ? ModelLoss::log_squared
                                                         : ModelLoss::mixed;
  options.network.unit = kUnit.number();
  options.network.squared_weight = kSquared.number();
  options.network.dropout = kDropout.number();
  options.rate = kRate.number();
  options.slate = static_cast<int64_t>(kSlate.number());
  options.seed = static_cast<uint64_t>(kSeed.number());
  options.caution = kCaution.number();
  options.fits_prices = kFits.number() != 0;
  static const Result<std::unique_ptr<CompileCache>> cache =
      CompileCache::open(std::filesystem::absolute("build/bench/prices"));
  options.compile.cache = cache.ok() ? cache->get() : nullptr;  // training steps are the same ones
  options.told = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  return options;
}

// The analytic price, corrected by trees.
class TreeCost : public Cost {
 public:
  TreeCost(const Target& target, const Prices& prices, Trees trees)
      : target_(target), analytic_(target, prices), prices_(prices), trees_(std::move(trees)) {}
  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    return std::make_unique<Kernel>(std::move(facts), *this, threads);
  }
  double copy(double bytes) const override { return analytic_.copy(bytes); }
  double command() const override { return analytic_.command(); }

 private:
  class Kernel : public PricedKernel {
   public:
    Kernel(std::shared_ptr<const KernelFacts> facts, const TreeCost& cost, int64_t threads)
        : cost_(cost), analytic_(std::move(facts), cost.target_, cost.prices_, threads) {}
    void price(std::span<const Schedule> schedules, double /*limit*/,
               std::span<double> seconds) override {
      for (size_t i = 0; i < schedules.size(); ++i) {
        Features features;
        const double price = analytic_.describe(schedules[i], features);
        seconds[i] = price * std::exp(cost_.trees_.residual(features));
      }
    }

   private:
    const TreeCost& cost_;
    AnalyticKernel analytic_;
  };
  const Target target_;
  const AnalyticCost analytic_;
  const Prices prices_;
  const Trees trees_;
};

std::vector<KernelVerdict> by_trees(const KernelData& data, const ProgramSplit& split,
                                    const Prices& prices) {
  std::vector<DescribedKernel> described;
  for (Part of : {Part::train, Part::validation})
    for (const KernelSample& kernel : part(data, split, of))
      described.push_back(describe(kernel, data.target, data.threads, prices));
  const TreeCost cost(data.target, prices, Trees(described, {}));
  return judge_prices(part(data, split, Part::test), cost, data.threads);
}

// The learned price without its gate.
std::vector<KernelVerdict> freely(const KernelData& data, const ProgramSplit& split,
                                  KernelModel model) {
  model.reach = 1e9;
  for (std::string_view kind : kKernelKinds)
    for (Algorithm algorithm : kAlgorithms)
      model.seen[fmt::format("{} {}", kind, name(algorithm))] = kLeastSeen;
  return judged(std::move(model), part(data, split, Part::test), data.target).learned;
}

struct Trials {
  KernelData data;
  std::vector<PriceTrial> unseen;
  std::vector<std::vector<KernelVerdict>> free, trees;  // of these
  std::vector<std::pair<std::string, PriceTrial>> dissimilar;
};

Result<Trials> all_trials() {
  Trials trials{.data = HONE_TRY(load_kernel_data(kData.text())),
                .unseen = {},
                .free = {},
                .trees = {},
                .dissimilar = {}};
  const std::vector<std::string> programs = programs_of(trials.data);
  for (int s = 0; s < static_cast<int>(kSplits.number()); ++s) {
    const ProgramSplit split = HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1)));
    fmt::print(stderr, "split {}\n", s + 1);
    trials.unseen.push_back(HONE_TRY(price_trial(trials.data, split, training())));
    trials.free.push_back(freely(trials.data, split, trials.unseen.back().model));
    if (kTrees.number() != 0)
      trials.trees.push_back(by_trees(trials.data, split, trials.unseen.back().model.prices));
  }
  if (kDissimilar.number() != 0)
    for (bool tests_convs : {false, true})
      trials.dissimilar.emplace_back(
          tests_convs ? "others_to_convs" : "convs_to_others",
          HONE_TRY(
              price_trial(trials.data, dissimilar_split(trials.data, tests_convs), training())));
  return trials;
}

const Result<Trials>& trials() {
  static const Result<Trials> all = all_trials();
  return all;
}

using Verdicts = std::vector<KernelVerdict> PriceTrial::*;
constexpr std::pair<std::string_view, Verdicts> kPrices[] = {{"plain", &PriceTrial::plain},
                                                             {"fitted", &PriceTrial::fitted},
                                                             {"learned", &PriceTrial::learned}};

// Of the kernels of a kind in all trials that have one.
void report(benchmark::State& state, std::string_view kind) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  const auto tell = [&](std::string_view name, const auto& verdicts_of, size_t count) {
    std::vector<double> tau, ceiling, top1, top5, error;
    double kernels = 0;
    for (size_t t = 0; t < count; ++t) {
      const MeanVerdict mean = mean_of(verdicts_of(t), kind);
      if (mean.kernels == 0) continue;
      kernels += static_cast<double>(mean.kernels);
      tau.push_back(mean.tau);
      ceiling.push_back(mean.ceiling);
      top1.push_back(mean.top1);
      top5.push_back(mean.top5);
      error.push_back(mean.error);
    }
    for (const auto& [what, values] :
         {std::pair("tau", &tau), {"top1", &top1}, {"top5", &top5}, {"error", &error}}) {
      const MeanInterval interval = interval_of(*values);
      state.counters[fmt::format("{}_{}", what, name)] = interval.mean;
      if (kind.empty()) state.counters[fmt::format("{}_{}_half", what, name)] = interval.half;
    }
    state.counters["ceiling"] = interval_of(ceiling).mean;
    state.counters["kernels"] = kernels;
  };
  const Trials& all = *trials();
  for (const auto& [name, verdicts] : kPrices)
    tell(name, [&](size_t t) { return all.unseen[t].*verdicts; }, all.unseen.size());
  tell("free", [&](size_t t) { return all.free[t]; }, all.free.size());
  if (!all.trees.empty()) tell("trees", [&](size_t t) { return all.trees[t]; }, all.trees.size());
}

void report_trust(benchmark::State& state) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  std::vector<double> holds, width, known, seconds;
  for (const PriceTrial& trial : trials()->unseen) {
    holds.push_back(trial.bound_holds);
    width.push_back(trial.bound);
    known.push_back(trial.known);
    seconds.push_back(trial.seconds);
  }
  state.counters["holds"] = interval_of(holds).mean;
  state.counters["holds_half"] = interval_of(holds).half;
  state.counters["bound"] = interval_of(width).mean;
  state.counters["known"] = interval_of(known).mean;
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
  state.counters["worst"] = worst_program(trial.learned, trial.fitted);
}

// ---- Speed --------------------------------------------------------------------------------------

// Schedules of a kernel of the data, by a Cost.
void score(benchmark::State& state, bool is_learned) {
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
    for (Scored& each : all) {
      each.kernel->price(each.sample->timed.schedules, std::numeric_limits<double>::infinity(),
                         each.seconds);
      scored += std::ssize(each.seconds);
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
  benchmark::RegisterBenchmark("scores/analytic", [](auto& state) { score(state, false); });
  benchmark::RegisterBenchmark("scores/learned", [](auto& state) { score(state, true); });
  return 0;
}();

}  // namespace
}  // namespace hone::bench
