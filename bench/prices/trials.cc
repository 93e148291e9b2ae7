#include "bench/prices/trials.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/rng.h"
#include "bench/flags.h"
#include "cache/compile_cache.h"
#include "kernel/kernel_kind.h"

namespace hone::bench {
namespace {

const Flag kData("data", "build/bench/kernels"), kSplits("splits", "5"), kMembers("members", "5"),
    kEpochs("epochs", "6"), kWidth1("width1", "32"), kWidth2("width2", "16"),
    kRate("rate", "0.003"), kSlate("slate", "32"), kSeed("seed", "0"), kLoss("loss", "mixed"),
    kUnit("unit", "0.1"), kSquared("squared", "1"), kDropout("dropout", "0.15"), kFits("fits", "1"),
    kDissimilar("dissimilar", "1"), kCaution("caution", "1"), kShare("share", "1"),
    kJitter("jitter", "0.15"), kAbsolute("absolute", "1"), kStart("start_data", ""),
    kSeconds("seconds", "6"), kTuned("tuned", "0");

}  // namespace

double seconds_of_plans() { return kSeconds.number(); }
double seconds_of_tuning() { return kTuned.number(); }

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

namespace {

// The learned price without its gate.
std::vector<KernelVerdict> freely(const KernelData& data, const ProgramSplit& split,
                                  KernelModel model) {
  model.reach = 1e9;
  for (std::string_view kind : kKernelKinds)
    for (Algorithm algorithm : kAlgorithms)
      model.seen[fmt::format("{} {}", kind, name(algorithm))] = kLeastSeen;
  return judged(std::move(model), part(data, split, Part::test), data.target).learned;
}

// A model of what another target's data has of the programs to train on.
Result<KernelModel> start_of(const KernelData& other, const ProgramSplit& split) {
  std::vector<KernelSample> train;
  for (Part of : {Part::train, Part::validation})
    for (KernelSample& kernel : part(other, split, of)) train.push_back(std::move(kernel));
  return train_kernel_model(train, other.target, other.threads, training());
}

}  // namespace

Result<KernelData> kernel_data() { return load_kernel_data(kData.text()); }

Result<std::vector<ProgramSplit>> splits_of(const KernelData& data) {
  const std::vector<std::string> programs = programs_of(data);
  std::vector<ProgramSplit> splits;
  for (int s = 0; s < static_cast<int>(kSplits.number()); ++s)
    splits.push_back(HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1))));
  return splits;
}

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

namespace {

Result<Trials> all_trials() {
  Trials trials;
  trials.data = HONE_TRY(kernel_data());
  std::optional<KernelData> other;
  if (!kStart.text().empty()) other = HONE_TRY(load_kernel_data(kStart.text()));
  trials.splits = HONE_TRY(splits_of(trials.data));
  for (const ProgramSplit& split : trials.splits) {
    fmt::print(stderr, "split {}\n", trials.unseen.size() + 1);
    ModelTraining options = training();
    std::optional<KernelModel> start;
    if (other) start = HONE_TRY(start_of(*other, split));
    if (start) options.start = &*start;
    trials.unseen.push_back(HONE_TRY(price_trial(thinned(trials.data, split), split, options)));
    trials.free.push_back(freely(trials.data, split, trials.unseen.back().model));
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
