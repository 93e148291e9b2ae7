// The processor's time of planning by the price that comes with hone, beside the analytic one: for
// models of the zoo. "times_as_long" is to be 2 at most.
//   --planned=A,B     these models (all)

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/text.h"
#include "bench/flags.h"
#include "cost/analytic.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "session/known_prices.h"
#include "target/presets.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

const Flag kPlanned("planned", "");
constexpr int kTimes = 3;  // of which the fastest counts

Status measure(benchmark::State& state, const std::string& name) {
  const Graph graph = HONE_TRY(prepare(HONE_TRY(build_zoo_model(name))));
  const Target target = HONE_TRY(host_target());
  const AnalyticCost analytic(target);
  const std::shared_ptr<const Cost> learned =
      KnownPrices({}, true).cost(target, [](std::string_view) {});
  if (learned == nullptr) return unsupported("hone has no learned price of this processor");
  Plan one;
  one.threads = 1;
  const auto seconds = [&](const Cost& cost) -> Result<double> {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimes; ++i) {
      const std::clock_t began = std::clock();
      HONE_TRY(complete(graph, one, target, cost));
      least = std::min(least, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    }
    return least;
  };
  const double by_formula = HONE_TRY(seconds(analytic)), by_both = HONE_TRY(seconds(*learned));
  for (auto _ : state) state.SetIterationTime(by_both);
  state.counters["analytic_ms"] = 1000 * by_formula;
  state.counters["learned_ms"] = 1000 * by_both;
  state.counters["times_as_long"] = by_both / by_formula;
  return {};
}

std::vector<std::string_view> planned() {
  if (!kPlanned.text().empty()) return split(kPlanned.text(), ',');
  std::vector<std::string_view> all;
  for (const ZooEntry& each : zoo_entries()) all.push_back(each.name);
  return all;
}

const Rows kRows([] {
  for (std::string_view model : planned())
    benchmark::RegisterBenchmark(fmt::format("planning/{}", model).c_str(),
                                 [model = std::string(model)](benchmark::State& state) {
                                   const Status status = measure(state, model);
                                   if (!status.ok())
                                     state.SkipWithError(status.error().to_string().c_str());
                                 })
        ->Iterations(1)
        ->UseManualTime();
});

}  // namespace
}  // namespace hone::bench
