// Runs of shardings over emulated links: eight models. Rows code/ are real code in two processes,
// each with half of the cores. Rows replay/ have 2, 4 and 8 devices: bytes really move, and kernels
// are sleeps of their priced time (bench/replay.h), in slow motion. "predicted" is the
// timeline's time by the measured one of the plan by price. The plan by price is beside the batch
// alone ("over_batch") and random plans ("over_random"): the measured time of the other by its own;
// above 1 it is better. The five random plans that the timeline finds fastest are measured, and the
// least time counts. The label says what had no time.
//
//   --plans=N    random plans (30)
//   --slower=N   how much more slowly than predicted replays are (100)

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/rng.h"
#include "base/text.h"
#include "bench/flags.h"
#include "bench/replay.h"
#include "cost/analytic.h"
#include "search/auto_shard.h"
#include "search/shard_problem.h"
#include "shard/batch_inputs.h"
#include "target/presets.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

const bench::Flag plans("plans", "30"), slower("slower", "100");

constexpr std::string_view kModels[] = {"mlp",       "resnet18", "mobilenet_v2", "squeezenet",
                                        "bert_base", "vit_b16",  "gpt2",         "lstm"};
constexpr int kRuns = 3;

constexpr size_t kMostMeasured = 5;

struct RandomPlans {
  std::vector<JudgedSharding> best = {};  // at most kMostMeasured
  int64_t failed = 0;
  std::string error = {};  // of the last one that failed
};

class Contest {
 public:
  Contest(Graph graph, System system)
      : graph_(std::move(graph)),
        system_(std::move(system)),
        mesh_(mesh_of_system(system_)),
        costs_({std::make_shared<const AnalyticCost>(system_.targets[0])}) {}

  Result<JudgedSharding> by_price() const {
    return HONE_TRY(auto_shard(graph_, mesh_, system_, costs_, {.seconds = 5})).best;
  }

  Result<JudgedSharding> batch_alone() const {
    ShardPrices prices(system_, costs_, mesh_);
    return hone::batch_alone(graph_, mesh_, system_, costs_, prices);
  }

  // Each node takes any of its options. The fastest few by the timeline, the fastest one first.
  Result<RandomPlans> best_random(int64_t count) const {
    ShardPrices prices(system_, costs_, mesh_);
    const ShardProblem problem = HONE_TRY(shard_problem(graph_, mesh_, prices));
    Rng rng(1);
    RandomPlans made;
    for (int64_t i = 0; i < count; ++i) {
      Assignment assignment;
      for (const AssignNode& node : problem.problem.nodes)
        assignment.push_back(static_cast<uint32_t>(rng.below(node.costs.size())));
      Result<JudgedSharding> one = judge_sharding(
          with_assignment(graph_, mesh_, problem, assignment), mesh_, system_, costs_, prices);
      if (!one.ok()) {
        ++made.failed;
        made.error = one.error().to_string();
        continue;
      }
      made.best.push_back(std::move(*one));
      std::ranges::sort(made.best, {}, &JudgedSharding::seconds);
      if (made.best.size() > kMostMeasured) made.best.pop_back();
    }
    return made;
  }

  // By real code, or replayed.
  Result<double> measured(const JudgedSharding& one, bool by_code) const {
    if (by_code) return bench::processes_seconds(one.partition.graph, one.plans, system_, kRuns);
    return bench::replayed_seconds(one.plans, system_, *costs_[0], kRuns, slower.number());
  }

 private:
  const Graph graph_;
  const System system_;
  const MeshRef mesh_;
  const std::vector<std::shared_ptr<const Cost>> costs_;
};

Status run(benchmark::State& state, std::string_view model, int64_t devices, bool by_code) {
  const Graph graph = HONE_TRY(build_zoo_model(model, {.size = ZooSize::tiny, .batch = 16}));
  const Target host = HONE_TRY(host_target());
  System system = HONE_TRY(preset_system(fmt::format("ring:{}", devices),
                                         part_of(host, by_code ? devices : host.cores)));
  system.links[0].bytes_per_second = 1e9;
  system.links[0].latency = 1e-6;
  const Contest contest(HONE_TRY(shard_subject(graph)).graph, system);
  const JudgedSharding price = HONE_TRY(contest.by_price());
  const double own = HONE_TRY(contest.measured(price, by_code));
  state.counters["measured_s"] = own;
  state.counters["predicted"] = price.seconds / own;
  std::vector<std::string> notes;
  if (const Result<JudgedSharding> batch = contest.batch_alone(); batch.ok())
    state.counters["over_batch"] = HONE_TRY(contest.measured(*batch, by_code)) / own;
  else
    notes.push_back(fmt::format("no batch alone: {}", batch.error().to_string()));
  // The timeline may take the second best for the best, so a few are measured.
  const RandomPlans random = HONE_TRY(contest.best_random(static_cast<int64_t>(plans.number())));
  std::optional<double> least;
  for (const JudgedSharding& one : random.best) {
    const double seconds = HONE_TRY(contest.measured(one, by_code));
    least = std::min(least.value_or(seconds), seconds);
  }
  if (least) state.counters["over_random"] = *least / own;
  if (random.failed > 0)
    notes.push_back(fmt::format("{} random plans failed: {}", random.failed, random.error));
  state.SetLabel(join(notes, "; "));
  return {};
}

void add_row(std::string_view kind, std::string_view model, int64_t devices) {
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}", kind, model, devices).c_str(),
      [=](benchmark::State& state) {
        for (auto _ : state)
          if (const Status done = run(state, model, devices, kind == "code"); !done.ok())
            state.SkipWithError(done.error().to_string().c_str());
      })
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

const bench::Rows rows([] {
  for (const std::string_view model : kModels) {
    add_row("code", model, 2);
    for (const int64_t devices : {2, 4, 8}) add_row("replay", model, devices);
  }
});

}  // namespace
}  // namespace hone::HONE_FILE
