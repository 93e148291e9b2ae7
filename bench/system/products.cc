// Products of what devices exchange, in steps against whole, over links on which computing and
// moving take about the same; and simulated against measured times.
//
// Links are emulated, and bytes really move. In `replayed` rows kernels are sleeps of their priced
// time, so all devices compute at once on any machine. In `computed` rows the code runs: only as
// many devices as the machine has cores, each on one.
//   --pairs=N    programs and systems whose simulated times are compared (default 60)
//   --runs=N     runs of which the median counts (default 3)
//   --slower=N   how much more slowly than simulated these systems are replayed (default 20)

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/rng.h"
#include "bench/flags.h"
#include "bench/replay.h"
#include "cost/analytic.h"
#include "ir/text.h"
#include "learn/ranking.h"
#include "target/presets.h"

namespace {

using namespace hone;

const bench::Flag kPairs("pairs", "60");
const bench::Flag kRuns("runs", "3");
const bench::Flag kSlower("slower", "20");

constexpr int64_t kInner = 512;

// A device with one core of this machine.
Target core() {
  static const Target one = part_of(host_target().value(), host_target().value().cores);
  return one;
}

System ring_of(int64_t devices, double bytes_per_second) {
  System system = preset_system(fmt::format("ring:{}", devices), core()).value();
  system.links[0].bytes_per_second = bytes_per_second;
  system.links[0].latency = 20e-6;
  return system;
}

std::string product(bool is_gathered, int64_t members, int64_t rows, int64_t columns) {
  if (is_gathered)
    return fmt::format(
        "graph @gathered(%x: f32[{1}, {2}], %w: f32[{2}, {3}]) {{\n"
        "  %all = all_gather %x {{axis = 0, group_size = {0}}}\n"
        "  %y = dot %all, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
        "  return %y\n}}\n",
        members, rows, kInner, columns);
  return fmt::format(
      "graph @scattered(%x: f32[{1}, {2}], %w: f32[{2}, {3}]) {{\n"
      "  %all = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  %y = reduce_scatter %all {{kind = sum, axis = 0, group_size = {0}}}\n"
      "  return %y\n}}\n",
      members, members * rows, columns, kInner);
}

SystemPlans planned(const Graph& graph, const System& system,
                    const std::shared_ptr<const Cost>& cost, bool overlaps) {
  return plan_for_system(graph, system, {{cost}}, {.overlaps = overlaps}).value();
}

// `share`: how long moving takes, in times of computing.
void run_product(benchmark::State& state, bool is_gathered, int64_t devices, double share,
                 bool computes) {
  constexpr int64_t kRows = 256;
  const Graph graph = parse_graph(product(is_gathered, devices, kRows, kInner)).value();
  const auto cost = std::make_shared<const AnalyticCost>(core());
  const double computing = planned(graph, ring_of(devices, 1e15), cost, false).seconds;
  const double moved = static_cast<double>((devices - 1) * kRows * kInner * 4);
  const System system = ring_of(devices, moved / (computing * share));
  const SystemPlans whole = planned(graph, system, cost, false);
  const SystemPlans steps = planned(graph, system, cost, true);
  const auto runs = static_cast<int>(kRuns.number());
  const auto measured = [&](const SystemPlans& plans) {
    return computes ? bench::computed_seconds(graph, plans, system, runs).value()
                    : bench::replayed_seconds(plans, system, *cost, runs).value();
  };
  for (auto _ : state) {
    const double before = measured(whole), after = measured(steps);
    state.SetIterationTime(after);
    state.counters["ratio"] = before / after;
    state.counters["priced_ratio"] = whole.seconds / steps.seconds;
    // Of steps that take as long as they may, without latencies.
    const auto p = static_cast<double>(devices);
    state.counters["bound_of_shards"] = (1 + share) / (std::max(share, (p - 1) / p) + 1 / p);
  }
  state.SetLabel(steps.plans[0].rewrite.empty() ? "whole" : steps.plans[0].rewrite[0].rule);
}

// ---- Simulated against measured
// ------------------------------------------------------------------

System random_system(Rng& rng) {
  const std::string preset = rng.chance(0.5) ? fmt::format("ring:{}", rng.between(2, 8))
                                             : fmt::format("mesh:2x{}", rng.between(2, 4));
  System system = preset_system(preset, core()).value();
  for (Links& links : system.links) {
    links.bytes_per_second = std::pow(10, rng.uniform(7.5, 8.7));
    links.latency = rng.uniform(0, 1e-3);
  }
  return system;
}

// Layers of products and exchanges.
Graph random_program(Rng& rng, int64_t devices) {
  const int64_t rows = devices * rng.between(8, 32);
  std::string text =
      fmt::format("graph @p(%x0: f32[{}, {}], %w: f32[{}, {}]) {{\n", rows, kInner, kInner, kInner);
  const int64_t layers = rng.between(1, 3);
  for (int64_t i = 0; i < layers; ++i) {
    text += fmt::format("  %d{0} = dot %x{0}, %w {{lhs_contract = [1], rhs_contract = [0]}}\n", i);
    if (rng.chance(0.5)) {
      text += fmt::format("  %x{} = all_reduce %d{} {{kind = sum, group_size = {}}}\n", i + 1, i,
                          devices);
    } else {
      text += fmt::format(
          "  %s{0} = reduce_scatter %d{0} {{kind = sum, axis = 0, group_size = {1}}}\n"
          "  %t{0} = tanh %s{0}\n"
          "  %x{2} = all_gather %t{0} {{axis = 0, group_size = {1}}}\n",
          i, devices, i + 1);
    }
  }
  return parse_graph(text + fmt::format("  return %x{}\n}}\n", layers)).value();
}

void simulated_and_measured(benchmark::State& state) {
  const auto cost = std::make_shared<const AnalyticCost>(core());
  const auto pairs = static_cast<int>(kPairs.number());
  for (auto _ : state) {
    std::vector<double> simulated, measured, errors;
    for (int i = 0; i < pairs; ++i) {
      Rng rng(static_cast<uint64_t>(i));
      const System system = random_system(rng);
      const Graph graph = random_program(rng, system.device_count());
      const SystemPlans plans = planned(graph, system, cost, rng.chance(0.5));
      simulated.push_back(plans.seconds);
      measured.push_back(bench::replayed_seconds(plans, system, *cost,
                                                 static_cast<int>(kRuns.number()), kSlower.number())
                             .value());
      errors.push_back(std::abs(simulated.back() / measured.back() - 1));
    }
    state.counters["kendall_tau"] = kendall_tau(simulated, measured);
    std::ranges::sort(errors);
    state.counters["median_error"] = errors[errors.size() / 2];
    state.counters["worst_error"] = errors.back();
    state.counters["pairs"] = static_cast<double>(errors.size());
  }
  state.SetLabel("2 to 8 devices, kernels are replayed in slow motion");
}

const bench::Rows kRows([] {
  const unsigned cores = std::thread::hardware_concurrency();
  for (const bool computes : {false, true})
    for (const int64_t devices : {2, 4})
      for (const bool is_gathered : {true, false})
        for (const double share : {0.25, 0.5, 1.0, 2.0, 4.0}) {
          if (computes && devices > cores) continue;
          benchmark::RegisterBenchmark(
              fmt::format("{}/{}/{} devices/moving {} of computing",
                          computes ? "computed" : "replayed",
                          is_gathered ? "all_gather" : "reduce_scatter", devices, share)
                  .c_str(),
              [=](benchmark::State& state) {
                run_product(state, is_gathered, devices, share, computes);
              })
              ->UseManualTime()
              ->Iterations(1)
              ->Unit(benchmark::kMillisecond);
        }
  benchmark::RegisterBenchmark("simulated_and_measured", simulated_and_measured)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
});

}  // namespace
