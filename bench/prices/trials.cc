#include "bench/prices/trials.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/rng.h"
#include "bench/flags.h"
#include "bench/prices/trees.h"
#include "cache/compile_cache.h"
#include "cost/analytic.h"
#include "cost/analytic_kernel.h"
#include "kernel/kernel_kind.h"

namespace hone::bench {
namespace {

const Flag kData("data", "build/bench/kernels"), kSplits("splits", "5"), kMembers("members", "5"),
    kEpochs("epochs", "6"), kWidth1("width1", "32"), kWidth2("width2", "16"),
    kRate("rate", "0.003"), kSlate("slate", "32"), kSeed("seed", "0"), kLoss("loss", "mixed"),
    kUnit("unit", "0.1"), kSquared("squared", "1"), kDropout("dropout", "0.15"), kFits("fits", "1"),
    kDissimilar("dissimilar", "1"), kCaution("caution", "1"), kTrees("trees", "0"),
    kShare("share", "1"), kJitter("jitter", "0.15"), kAbsolute("absolute", "1"),
    kStart("start_data", "");

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
  options.network.absolute = kAbsolute.number();
  options.jitter = kJitter.number();
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

// The kernels of the test part, and a share of the others.
KernelData thinned(KernelData data, const ProgramSplit& split) {
  std::set<uint64_t> tested;
  for (const KernelSample& kernel : part(data, split, Part::test))
    tested.insert(kernel.timed.facts->hash);
  Rng rng(1);
  std::erase_if(data.kernels, [&](const KernelSample& kernel) {
    return rng.uniform() >= kShare.number() && !tested.contains(kernel.timed.facts->hash);
  });
  return data;
}

// A model of what another target's data has of the programs to train on.
Result<KernelModel> start_of(const KernelData& other, const ProgramSplit& split) {
  std::vector<KernelSample> train;
  for (Part of : {Part::train, Part::validation})
    for (KernelSample& kernel : part(other, split, of)) train.push_back(std::move(kernel));
  return train_kernel_model(train, other.target, other.threads, training());
}

Result<Trials> all_trials() {
  Trials trials{.data = HONE_TRY(load_kernel_data(kData.text())),
                .splits = {},
                .unseen = {},
                .free = {},
                .trees = {},
                .dissimilar = {}};
  std::optional<KernelData> other;
  if (!kStart.text().empty()) other = HONE_TRY(load_kernel_data(kStart.text()));
  const std::vector<std::string> programs = programs_of(trials.data);
  for (int s = 0; s < static_cast<int>(kSplits.number()); ++s) {
    const ProgramSplit split = HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1)));
    fmt::print(stderr, "split {}\n", s + 1);
    trials.splits.push_back(split);
    ModelTraining options = training();
    std::optional<KernelModel> start;
    if (other) start = HONE_TRY(start_of(*other, split));
    if (start) options.start = &*start;
    trials.unseen.push_back(HONE_TRY(price_trial(thinned(trials.data, split), split, options)));
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

}  // namespace

const Result<Trials>& trials() {
  static const Result<Trials> all = all_trials();
  return all;
}

}  // namespace hone::bench
