// Placing buffers: many at once, those of the models of the zoo, the public instances of
// MiniMalloc, and generated ones that leave no gap. "ratio" is the height by the lower bound.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "alloc/csv.h"
#include "alloc/generate.h"
#include "alloc/plan_memory.h"
#include "base/file.h"
#include "bench/onnx_runtime.h"
#include "plan/planned.h"
#include "planner/memory.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "zoo/zoo.h"

namespace {

using namespace hone;
using Clock = std::chrono::steady_clock;

constexpr int64_t kCapacity = 1 << 20;
constexpr double kSlack = 0.02;

struct Timed {
  MemoryPlan plan;
  double seconds = 0;
  double ratio() const {
    return static_cast<double>(plan.spaces[0].height) / static_cast<double>(plan.spaces[0].bound);
  }
};

Timed timed(const MemoryProblem& problem, const MemoryOptions& options) {
  const Clock::time_point start = Clock::now();
  Timed result{plan_memory(problem, options).value()};
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

// ---- Many buffers ------------------------------------------------------------------------------

void solve_many(benchmark::State& state, const std::vector<MemoryProblem>& problems,
                bool minimize) {
  double worst = 0, slowest = 0, within = 0;
  for (auto _ : state)
    for (const MemoryProblem& problem : problems) {
      const Timed done = timed(problem, {.minimize = minimize, .seconds = 2});
      worst = std::max(worst, done.ratio());
      slowest = std::max(slowest, done.seconds);
      within += done.ratio() <= 1 + kSlack ? 1 : 0;
    }
  state.counters["worst_ratio"] = worst;
  state.counters["slowest_s"] = slowest;
  state.counters["within_slack"] = within / static_cast<double>(problems.size());
}

// 100,000 buffers of which a placement without a gap exists; 2 % of slack. With fewer steps, more
// begins, ends and sizes are the same, and it is harder to tell what belongs together. Time has as
// many steps, or so many moments. Pieces to cut are drawn by area; otherwise all alike, so that
// most are single steps in the end.
MemoryProblem many_pieces(int64_t log_of_steps, int64_t moments, bool by_area, Rng& rng) {
  return guillotine({.buffers = 100'000,
                     .steps = int64_t{1} << log_of_steps,
                     .moments = moments,
                     .by_area = by_area ? 1.0 : 0.0,
                     .slack = kSlack},
                    rng);
}

void guillotine_100000(benchmark::State& state) {
  std::vector<MemoryProblem> problems;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed);
    problems.push_back(many_pieces(state.range(0), state.range(1), state.range(2) != 0, rng));
  }
  solve_many(state, problems, false);
}
BENCHMARK(guillotine_100000)
    ->ArgNames({"log_of_steps", "moments", "by_area"})
    ->Args({20, 0, 1})
    ->Args({19, 0, 1})
    ->Args({18, 0, 1})
    ->Args({17, 0, 1})
    ->Args({16, 0, 1})
    ->Args({14, 0, 1})
    ->Args({12, 0, 1})
    ->Args({10, 0, 1})
    ->Args({20, 100'000, 1})
    ->Args({20, 30'000, 1})
    ->Args({20, 10'000, 1})
    ->Args({20, 6'000, 1})
    ->Args({20, 4'000, 1})
    ->Args({20, 2'000, 1})
    ->Args({20, 1'000, 1})
    ->Args({20, 100, 1})
    ->Args({16, 100'000, 1})
    ->Args({14, 100'000, 1})
    ->Args({20, 0, 0})
    ->Args({20, 100'000, 0})
    ->Args({20, 10'000, 0})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Pieces of an exact rectangle tell by their sides how they fit. Here they do so no longer for all:
// 2 % of them are missing, or each is smaller by up to 4 %. What is the lowest is not known, so the
// ratio is at most so bad.
void inexact(benchmark::State& state, void (*spoil)(MemoryProblem&, Rng&)) {
  std::vector<MemoryProblem> problems;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Rng rng(seed);
    problems.push_back(many_pieces(state.range(0), 0, true, rng));
    spoil(problems.back(), rng);
  }
  solve_many(state, problems, true);
}

void thinned_100000(benchmark::State& state) {
  inexact(state, [](MemoryProblem& problem, Rng& rng) {
    std::erase_if(problem.buffers, [&](const MemoryBuffer&) { return rng.chance(0.02); });
  });
}
BENCHMARK(thinned_100000)->Arg(20)->Arg(10)->Iterations(1)->Unit(benchmark::kMillisecond);

void shrunk_100000(benchmark::State& state) {
  inexact(state, [](MemoryProblem& problem, Rng& rng) {
    for (MemoryBuffer& buffer : problem.buffers) buffer.size -= rng.between(0, buffer.size / 25);
  });
}
BENCHMARK(shrunk_100000)->Arg(20)->Arg(10)->Iterations(1)->Unit(benchmark::kMillisecond);

// The temporaries of a graph, as the planner orders its steps.
MemoryProblem temporaries(const Graph& source) {
  const Graph graph = prepare(source).value();
  const Plan plan = complete(graph, {}, host_target().value()).value();
  const PlannedGraph frame = planned(plan, graph).value();
  return memory_problem(frame, lifetimes(frame, frame.order), {});
}

// 88,000 nodes.
void unrolled(benchmark::State& state) {
  const MemoryProblem problem =
      temporaries(build_zoo_model("lstm", {.length = 2200, .unroll = true}).value());
  for (auto _ : state)
    state.counters["ratio"] = timed(problem, {.minimize = true, .seconds = 2}).ratio();
  state.counters["buffers"] = static_cast<double>(problem.buffers.size());
}
BENCHMARK(unrolled)->Unit(benchmark::kMillisecond);

// Every model of the zoo, as published.
void zoo(benchmark::State& state) {
  std::map<std::string, MemoryProblem> problems;
  for (const ZooEntry& entry : zoo_entries())
    problems[std::string(entry.name)] = temporaries(build_zoo_model(entry.name).value());
  double slowest = 0, worst = 0, at_bound = 0;
  std::string slow, bad;
  for (auto _ : state)
    for (const auto& [name, problem] : problems) {
      if (problem.buffers.empty()) continue;
      const Timed done = timed(problem, {.minimize = true, .nodes = kMemoryNodes});
      if (done.seconds > slowest) slow = name;
      if (done.ratio() > worst) bad = name;
      slowest = std::max(slowest, done.seconds);
      worst = std::max(worst, done.ratio());
      at_bound += done.plan.spaces[0].height == done.plan.spaces[0].bound ? 1 : 0;
    }
  state.counters["slowest_ms"] = 1e3 * slowest;
  state.counters["worst_ratio"] = worst;
  state.counters["at_bound"] = at_bound / static_cast<double>(problems.size());
  state.SetLabel(fmt::format("slowest {}, worst {}", slow, bad));
}
BENCHMARK(zoo)->Iterations(1)->Unit(benchmark::kMillisecond);

// ---- The public instances ----------------------------------------------------------------------

std::optional<MemoryProblem> public_instance(benchmark::State& state, const std::string& letter) {
  const std::filesystem::path file =
      hone::bench::root() / fmt::format("../shared/data/minimalloc/{}.1048576.csv", letter);
  if (!std::filesystem::exists(file)) {
    state.SkipWithError(fmt::format("no {}", file.lexically_normal().string()).c_str());
    return std::nullopt;
  }
  MemoryProblem problem =
      parse_memory_csv(read_file(file, kMaxMemoryCsvBytes).value(), letter).value().problem;
  problem.capacity = {kCapacity};
  return problem;
}

void report(benchmark::State& state, const Timed& done) {
  const MemoryBounds& bounds = done.plan.spaces[0];
  state.SetIterationTime(done.seconds);
  state.counters["height"] = static_cast<double>(bounds.height);
  state.counters["bound"] = static_cast<double>(bounds.bound);
  state.counters["backtracks"] = static_cast<double>(done.plan.counts.backtracks);
}

// `search`: without the quick placements.
void fits(benchmark::State& state, const std::string& letter, const MemoryTechniques& techniques) {
  const std::optional<MemoryProblem> problem = public_instance(state, letter);
  if (!problem) return;
  for (auto _ : state) {
    const Timed done = timed(*problem, {.seconds = 60, .techniques = techniques});
    report(state, done);
    if (done.plan.verdict != MemoryVerdict::placed) return state.SkipWithError("not placed");
  }
}

void minimize(benchmark::State& state, const std::string& letter) {
  const std::optional<MemoryProblem> problem = public_instance(state, letter);
  if (!problem) return;
  for (auto _ : state) report(state, timed(*problem, {.minimize = true, .seconds = 10}));
}

// ---- Generated instances -----------------------------------------------------------------------

// Largest first, each where the free stretch is the smallest that holds it: what many planners do.
int64_t best_fit(const MemoryProblem& problem, const auto& key) {
  const std::vector<MemoryBuffer>& buffers = problem.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(-key(buffers[i]), i); });
  std::vector<std::pair<int64_t, size_t>> placed;  // by offset
  int64_t height = 0;
  for (size_t i : order) {
    int64_t best = -1, least = INT64_MAX, end = 0;
    for (const auto& [offset, other] : placed) {
      if (buffers[other].end <= buffers[i].begin || buffers[i].end <= buffers[other].begin)
        continue;
      if (offset - end >= buffers[i].size && offset - end < least) {
        best = end;
        least = offset - end;
      }
      end = std::max(end, offset + buffers[other].size);
    }
    const std::pair<int64_t, size_t> at{best >= 0 ? best : end, i};
    placed.insert(std::ranges::upper_bound(placed, at), at);
    height = std::max(height, at.first + buffers[i].size);
  }
  return height;
}

// 200 without slack, of 100 to 400 buffers, that best fit misses by 5 % at least in each order.
const std::vector<MemoryProblem>& generated() {
  static const std::vector<MemoryProblem> problems = [] {
    std::vector<MemoryProblem> result;
    for (uint64_t seed = 1; result.size() < 200; ++seed) {
      Rng rng(seed);
      MemoryProblem problem = guillotine({.buffers = rng.between(100, 400)}, rng);
      const auto length = [](const MemoryBuffer& b) { return b.end - b.begin; };
      const int64_t best =
          std::min({best_fit(problem, [](const MemoryBuffer& b) { return b.size; }),
                    best_fit(problem, length),
                    best_fit(problem, [&](const MemoryBuffer& b) { return length(b) * b.size; })});
      if (best * 100 >= kCapacity * 105) result.push_back(std::move(problem));
    }
    return result;
  }();
  return problems;
}

void solve_generated(benchmark::State& state, const MemoryTechniques& techniques) {
  for (auto _ : state) {
    std::vector<double> seconds;
    double solved = 0, backtracks = 0, logs = 0;
    for (const MemoryProblem& problem : generated()) {
      const Timed done = timed(problem, {.seconds = 2, .techniques = techniques});
      seconds.push_back(done.seconds);
      solved += done.plan.verdict == MemoryVerdict::placed ? 1 : 0;
      const auto here = static_cast<double>(done.plan.counts.backtracks);
      backtracks += here;
      logs += std::log(here + 1);
    }
    std::ranges::sort(seconds);
    state.counters["solved"] = solved / static_cast<double>(seconds.size());
    state.counters["median_ms"] = 1e3 * seconds[seconds.size() / 2];
    state.counters["max_ms"] = 1e3 * seconds.back();
    state.counters["backtracks"] = backtracks;
    state.counters["mean_backtracks"] = std::exp(logs / static_cast<double>(seconds.size())) - 1;
  }
}

// The search alone, with so many steps that each run is the same. Up to 15 % of the pieces are
// missing: how far it goes back matters more than where all fits. Training takes other seeds.
void solve_thinned(benchmark::State& state, const MemoryTechniques& techniques) {
  constexpr uint64_t kProblems = 200;
  for (auto _ : state) {
    double solved = 0, nodes = 0, backtracks = 0;
    for (uint64_t seed = 1; seed <= kProblems; ++seed) {
      Rng rng(seed);
      MemoryProblem problem = guillotine({.buffers = rng.between(100, 300)}, rng);
      const double missing = rng.uniform(0, 0.15);
      std::erase_if(problem.buffers, [&](const MemoryBuffer&) { return rng.chance(missing); });
      const MemoryPlan plan =
          plan_memory(problem, {.nodes = 20'000, .techniques = techniques}).value();
      solved += plan.verdict == MemoryVerdict::placed ? 1 : 0;
      nodes += std::log(static_cast<double>(plan.counts.nodes));
      backtracks += std::log(static_cast<double>(plan.counts.backtracks) + 1);
    }
    state.counters["solved"] = solved / kProblems;
    state.counters["mean_nodes"] = std::exp(nodes / kProblems);
    state.counters["mean_backtracks"] = std::exp(backtracks / kProblems) - 1;
  }
}

int register_all() {
  MemoryTechniques searched, unlearned;
  searched.greedy = searched.improve = false;
  unlearned = searched;
  unlearned.learned = false;
  const std::pair<const char*, MemoryTechniques> ways[] = {
      {"all", {}}, {"search", searched}, {"search_no_learned", unlearned}};
  for (const auto& [way, techniques] : ways) {
    for (const std::string letter : {"A", "C", "E", "F", "H", "J"})
      benchmark::RegisterBenchmark(fmt::format("fits/{}/{}", way, letter).c_str(),
                                   [=](benchmark::State& s) { fits(s, letter, techniques); })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(fmt::format("generated/{}", way).c_str(),
                                 [=](benchmark::State& s) { solve_generated(s, techniques); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  for (const auto& [guide, techniques] : {std::pair{"learned", searched}, {"plain", unlearned}})
    benchmark::RegisterBenchmark(fmt::format("guide/{}", guide).c_str(),
                                 [=](benchmark::State& s) { solve_thinned(s, techniques); })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  for (const std::string letter : {"A", "C", "E", "F", "H", "J"})
    benchmark::RegisterBenchmark(fmt::format("minimize/{}", letter).c_str(),
                                 [=](benchmark::State& s) { minimize(s, letter); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  return 0;
}
[[maybe_unused]] const int registered = register_all();

}  // namespace
