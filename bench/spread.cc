// How far the time of a model differs from process to process: where its weights, arena and code
// lie is decided anew in each. A model is compiled once; then each process loads its plan and code
// from a cache, and runs it.
//   --processes=N  of a model (5)
//   --seconds=S    of a process (1)
//   --models=A,B   of the zoo (all that have at most 500 M parameters)
// ms       the middle one of the processes' medians
// spread   the largest of these medians less the smallest, in parts of the middle one
// best     the same of the 10 % quantiles, which other work on the machine reaches less

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bench/child.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "compile/compilation.h"
#include "measure/timing.h"
#include "session/known_prices.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::bench::HONE_FILE {
namespace {

const Flag kProcesses("processes", "5"), kSeconds("seconds", "1"), kModels("models", "");
constexpr double kMostParameters = 5e8;

struct Times {
  double median = 0, best = 0;
};

Result<Times> times_of(const Graph& graph, int64_t threads) {
  const auto cache = HONE_TRY(CompileCache::open(root() / "build" / "bench" / "spread"));
  const Target target = HONE_TRY(host_target());
  CompileOptions options{.cache = cache.get()};
  options.plan.threads = threads;
  options.cost = KnownPrices({}, true).cost(target, [](std::string_view) {});
  Compilation compilation(graph, target, options);
  const std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 1));
  const Timing timing = HONE_TRY(measure(
      {.seconds = kSeconds.number()}, {},
      [&]() -> Status {
        HONE_TRY(executable->run(inputs));
        return {};
      }));
  return Times{timing.median(), timing.quantile(0.1)};
}

// The largest less the smallest, in parts of the middle one.
double spread(std::vector<double> values) {
  std::ranges::sort(values);
  return (values.back() - values.front()) / values[values.size() / 2];
}

std::vector<double>& spreads() {
  static std::vector<double> all;
  return all;
}

Status report(benchmark::State& state, const std::string& model, int64_t threads) {
  const Graph graph = HONE_TRY(build_zoo_model(model));
  // The first one fills the cache.
  HONE_TRY(in_child<Times>([&] { return times_of(graph, threads); }));
  std::vector<double> medians, bests;
  for (auto _ : state) {
    for (int i = 0; i < static_cast<int>(kProcesses.number()); ++i) {
      const Times times = HONE_TRY(in_child<Times>([&] { return times_of(graph, threads); }));
      medians.push_back(times.median);
      bests.push_back(times.best);
    }
    state.SetIterationTime(*std::ranges::min_element(medians));
  }
  state.counters["spread"] = spread(medians);
  state.counters["best"] = spread(bests);
  std::ranges::sort(medians);
  state.counters["ms"] = 1e3 * medians[medians.size() / 2];
  spreads().push_back(state.counters["spread"]);
  return {};
}

void add_middle(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(0);
  if (spreads().empty()) return;
  std::ranges::sort(spreads());
  state.counters["spread"] = spreads()[spreads().size() / 2];
  state.counters["largest"] = spreads().back();
}

const Rows kRows([] {
  std::vector<std::string> models;
  for (std::string_view name : split(kModels.text(), ',')) models.emplace_back(name);
  if (!kModels.is_given()) {
    models.clear();
    for (const ZooEntry& entry : zoo_entries())
      if (entry.published.parameters <= kMostParameters) models.emplace_back(entry.name);
  }
  const auto add = [](const std::string& name, const auto& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (const std::string& model : models)
    for (const int64_t threads : {1, 2})
      add(fmt::format("{}/threads:{}", model, threads), [=](benchmark::State& state) {
        const Status status = report(state, model, threads);
        if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
      });
  add("middle", add_middle);
});

}  // namespace
}  // namespace hone::bench::HONE_FILE
