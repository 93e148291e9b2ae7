// How well the analytic price orders schedules that searches visit, and how far the choice of the
// planner, by the prices that come with hone, is from the best: over distinct kernels of the zoo,
// by kind. Half of the schedules are random, half are those of an evolution by measured times. Each
// is measured in a race with the planner's. What the log has is not measured again, so a run may be
// broken off and resumed, and `hone log export --log FILE` makes the data set (docs/cost.md).
//   --log=FILE       of the measurements (build/bench/headroom.db)
//   --kernels=N      of all models together, in turn those with the largest prices (300)
//   --schedules=N    of a kernel (64)
//   --seconds=S      measures no further kernel after so long (no limit)
//   --seed=N --threads=N --models=A,B --isa=LEVEL
// Prices are unfitted, and fitted: each half of the kernels by coefficients fitted to the other.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>

#include "base/text.h"
#include "bench/flags.h"
#include "cost/analytic.h"
#include "kernel/kernel_kind.h"
#include "learn/ranking.h"
#include "rewrite/prepare.h"
#include "session/known_prices.h"
#include "tune/collect_kernel.h"
#include "zoo/zoo.h"

namespace hone::bench::HONE_FILE {
namespace {

const Flag kLog("log", "build/bench/headroom.db"), kKernels("kernels", "300"),
    kSchedules("schedules", "64"), kSeconds("seconds", "1e9"), kSeed("seed", "1"),
    kThreads("threads", "1"), kIsa("isa", ""),
    kModels("models",
            "mobilenet_v2,efficientnet_b0,inception_v3,resnet50,gpt2,unet,vit_b16,densenet121,"
            "bert_base,shufflenet_v2,mixer,squeezenet");
constexpr size_t kLeastTimed = 4;  // schedules of a kernel, to say something about their order

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- Kernels ------------------------------------------------------------------------------------

// One of each model in turn, so that a few kernels are of many models.
Result<std::vector<DefaultKernel>> all_kernels(const Target& target, int64_t threads) {
  std::set<uint64_t> seen;
  std::vector<std::vector<DefaultKernel>> models;
  std::shared_ptr<const Cost> cost = KnownPrices({}, true).cost(target, [](std::string_view) {});
  if (cost == nullptr) cost = std::make_shared<AnalyticCost>(target);
  for (std::string_view model : split(kModels.text(), ',')) {
    const Graph graph = HONE_TRY(prepare(HONE_TRY(build_zoo_model(model))));
    models.push_back(HONE_TRY(default_kernels(graph, target, *cost, threads)));
    std::erase_if(models.back(), [&](const DefaultKernel& kernel) {
      return !seen.insert(kernel.facts->hash).second;
    });
  }
  return in_turns(std::move(models), static_cast<size_t>(kKernels.number()));
}

// ---- Measuring ----------------------------------------------------------------------------------

struct Kernel {
  TimedKernel timed;  // the planner's schedule first
  std::string_view kind;
};

Result<std::optional<Kernel>> measure(const DefaultKernel& kernel, const Target& target,
                                      MeasuredKernels& known) {
  MeterOptions meter;
  meter.conditions.threads = static_cast<int64_t>(kThreads.number());
  KernelTimer timer(kernel.facts, kernel.planned, target, known, meter);
  HONE_TRY(collect_schedules(kernel, target,
                             {.schedules = static_cast<int64_t>(kSchedules.number()),
                              .seed = static_cast<uint64_t>(kSeed.number())},
                             timer));
  if (timer.timed().seconds.size() < kLeastTimed) return std::optional<Kernel>();
  return std::optional(
      Kernel{timer.timed(), kernel_kind(*kernel.facts, kernel.planned.algorithm())});
}

// ---- What it says -------------------------------------------------------------------------------

struct Figures {
  double kernels = 0, schedules = 0, best = 0;  // `best`: logarithms of planned / best
  struct Price {
    double tau = 0, top1 = 0, top5 = 0, error = 0;
  } plain, fitted;

  static void add(Price& to, const TimedKernel& kernel, std::span<const double> prices) {
    to.tau += kendall_tau(prices, kernel.seconds);
    to.top1 += regret(prices, kernel.seconds, 1);
    to.top5 += regret(prices, kernel.seconds, 5);
    to.error += mean_error(prices, kernel.seconds);
  }
};

struct Data {
  std::vector<Kernel> kernels;
  std::vector<std::vector<double>> plain, fitted;  // prices, by kernel
};

Result<Data> measure_all() {
  Target target = HONE_TRY(host_target());
  if (!kIsa.text().empty()) {
    const std::optional<Isa> isa = isa_from_name(kIsa.text());
    if (!isa) return usage_error("--isa={}: there is no such level", kIsa.text());
    target = restricted(std::move(target), *isa);
  }
  const auto threads = static_cast<int64_t>(kThreads.number());
  const std::unique_ptr<Log> log = HONE_TRY(Log::open(kLog.text()));
  MeasuredKernels known(log.get(), target, HONE_VERSION);
  Data data;
  const double until = now() + kSeconds.number();
  const std::vector<DefaultKernel> subjects = HONE_TRY(all_kernels(target, threads));
  for (const DefaultKernel& subject : subjects) {
    if (now() > until) break;
    const Result<std::optional<Kernel>> kernel = measure(subject, target, known);
    if (!kernel.ok()) fmt::print(stderr, "a kernel is left out: {}\n", kernel.error().what());
    if (!kernel.ok() || !*kernel) continue;
    data.kernels.push_back(**kernel);
    fmt::print(stderr, "kernel {} of {}, {}: {} schedules\n", data.kernels.size(), subjects.size(),
               (*kernel)->kind, (*kernel)->timed.seconds.size());
  }
  if (known.unwritten()) return Error(*known.unwritten());
  Prices fits[2];
  for (size_t half = 0; half < 2; ++half) {
    std::vector<TimedKernel> others;
    for (size_t i = 1 - half; i < data.kernels.size(); i += 2)
      others.push_back(data.kernels[i].timed);
    fits[half] = fit_prices(others, target, threads).prices;
  }
  for (size_t i = 0; i < data.kernels.size(); ++i) {
    data.plain.push_back(price_all(data.kernels[i].timed, target, threads, Prices()));
    data.fitted.push_back(price_all(data.kernels[i].timed, target, threads, fits[i % 2]));
  }
  return data;
}

const Result<Data>& data() {
  static const Result<Data> all = measure_all();
  return all;
}

void report(benchmark::State& state, std::string_view kind) {
  if (!data().ok()) return state.SkipWithError(data().error().to_string().c_str());
  Figures sum;
  for (size_t i = 0; i < data()->kernels.size(); ++i) {
    const auto& [timed, of_kind] = data()->kernels[i];
    if (kind != "all" && kind != of_kind) continue;
    ++sum.kernels;
    sum.schedules += static_cast<double>(timed.seconds.size());
    sum.best += std::log(timed.seconds[0] / *std::ranges::min_element(timed.seconds));
    Figures::add(sum.plain, timed, data()->plain[i]);
    Figures::add(sum.fitted, timed, data()->fitted[i]);
  }
  for (auto _ : state) state.SetIterationTime(0);
  state.counters["kernels"] = sum.kernels;
  if (sum.kernels == 0) return;
  state.counters["schedules"] = sum.schedules;
  state.counters["planned_to_best"] = std::exp(sum.best / sum.kernels);
  const auto tell = [&](const std::string& name, const Figures::Price& price) {
    state.counters["tau" + name] = price.tau / sum.kernels;
    state.counters["top1" + name] = price.top1 / sum.kernels;
    state.counters["top5" + name] = price.top5 / sum.kernels;
    state.counters["error" + name] = price.error / sum.kernels;
  };
  tell("", sum.plain);
  tell("_fitted", sum.fitted);
}

const int registered = [] {
  const auto add = [](std::string_view kind) {
    benchmark::RegisterBenchmark(std::string(kind).c_str(),
                                 [kind](benchmark::State& state) { report(state, kind); })
        ->Iterations(1)
        ->UseManualTime();
  };
  for (std::string_view kind : kKernelKinds) add(kind);
  add("all");
  return 0;
}();

}  // namespace
}  // namespace hone::bench::HONE_FILE
