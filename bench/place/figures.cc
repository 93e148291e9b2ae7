// Figures of the learned policy beside the public graphs and the workloads:
//   zero_shot/N: a drawn graph of N nodes on four devices. "view_ms" and "look_ms" are the policy's
//     own time, "at_once_ms" also places by its first head, and "all_ms" is the placer `policy`.
//     "over_rival" is its step over that of the best quick rival, which together took "rivals_ms".
//   joint/K: fusions, devices and order of a drawn graph, each way of deciding in percent of
//     one after another
//   chips/N: a module of N chips; loads over that of policy and solver, by equal samples
//   measured/N: 20 plans on N devices of emulated links. Nodes wait out their time, and messages
//   are
//     real: "tau" compares the order of the plans by the clock and by the timeline, and "over" is
//     the mean of the clock's time over it.
//   --joint_trials=N (600), --chip_samples=N (60), --chip_graphs=N (6)

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "bench/flags.h"
#include "lab/models/judge_placement.h"
#include "lab/models/train_fusion.h"
#include "learn/ranking.h"
#include "place/generate.h"
#include "place/placer.h"
#include "place/policy_steps.h"
#include "place/sort_by.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

const bench::Flag joint_trials("joint_trials", "600"), chip_samples("chip_samples", "60"),
    chip_graphs("chip_graphs", "6");

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// ---- Large graphs ------------------------------------------------------------------------------

void zero_shot(benchmark::State& state, int64_t nodes) {
  const PlacePolicy* const policy = shipped_policy();
  if (policy == nullptr) return state.SkipWithError("there is no policy");
  Rng rng(static_cast<uint64_t>(nodes));
  const PlaceProblem problem = make_place(
      {.family = PlaceFamily::layers, .devices = 4, .nodes = nodes, .traffic = 0.3}, rng);
  const PlaceJudge judge(problem);
  for (auto _ : state) {
    const PlaceOptions options;
    PlaceRun run(judge, options);
    const Clock::time_point start = Clock::now();
    const PolicyView view(run);
    state.counters["view_ms"] = milliseconds_since(start);
    const PlacePolicy::Said said = policy->look(view);
    state.counters["look_ms"] = milliseconds_since(start) - state.counters["view_ms"].value;
    if (!place_at_once(run, view, said, 1)) return state.SkipWithError("nothing fits");
    state.counters["at_once_ms"] = milliseconds_since(start);
    const Result<PlaceResult> placed =
        place(judge, {.by = "policy", .seconds = 1e9, .policy = policy});
    if (!placed.ok()) return state.SkipWithError(placed.error().what().c_str());
    state.counters["all_ms"] = 1e3 * placed->placers.back().seconds;
    double best = kCannotRun;
    const Clock::time_point rivals = Clock::now();
    for (const std::string_view by : {"contiguous", "heft", "critical", "multilevel"}) {
      const Result<PlaceResult> rival = place(judge, {.by = std::string(by), .seconds = 60});
      if (rival.ok()) best = std::min(best, rival->value);
    }
    state.counters["rivals_ms"] = milliseconds_since(rivals);
    state.counters["over_rival"] = placed->value / best;
    state.counters["gap_percent"] = 100 * placed->gap(PlaceGoal::step);
  }
}

// ---- Together or one after another -------------------------------------------------------------

void joint(benchmark::State& state, int64_t number) {
  Rng rng(static_cast<uint64_t>(number));
  DrawnPlace drawn = draw_place(100, number % 2 == 1, rng);
  drawn.has_fusions = true;
  drawn.goal = PlaceGoal::step;
  const PlaceProblem problem = make_place(drawn, rng);
  for (auto _ : state) {
    const Result<std::vector<JointRow>> rows =
        joint_rows(problem, {.trials = static_cast<int64_t>(joint_trials.number())});
    if (!rows.ok()) return state.SkipWithError(rows.error().what().c_str());
    const double stages = std::ranges::find(*rows, kStagesRow, &JointRow::name)->value;
    for (const JointRow& row : *rows)
      state.counters[std::string(row.name)] = 100 * row.value / stages;
  }
  state.SetLabel(problem.name);
}

// ---- Modules of chips --------------------------------------------------------------------------

void chips(benchmark::State& state, int64_t count) {
  if (shipped_policy() == nullptr) return state.SkipWithError("there is no policy");
  for (auto _ : state) {
    const Result<ChipVerdicts> found =
        judge_chips(*shipped_policy(), count,
                    {.graphs = static_cast<int64_t>(chip_graphs.number()),
                     .nodes = 120,
                     .trials = static_cast<int64_t>(chip_samples.number())});
    if (!found.ok()) return state.SkipWithError(found.error().what().c_str());
    const auto* const policy =
        &*std::ranges::find(found->searches, std::string("policy+solver"), &ChipVerdict::search);
    for (const ChipVerdict& one : found->searches) {
      state.counters[one.search] = one.over_best / policy->over_best;
      state.counters[one.search + " samples"] = one.samples;
    }
    state.counters["compared"] = static_cast<double>(found->compared);
  }
}

// ---- By the clock ------------------------------------------------------------------------------

// Runs the nodes of a placement in the order of its timeline, each device by a thread. A node takes
// its time of the clock, in which the thread sleeps; so devices do not take turns on few cores.
class ClockRun {
 public:
  ClockRun(const PlaceProblem& problem, const PlaceJudge& judge, const DevicePlacement& placement,
           const PlaceTimeline& timeline)
      : problem_(problem), judge_(judge), placement_(placement), order_(judge.order()) {
    sort_by(order_, [&](uint32_t i) { return timeline.start(i); });
    inputs_.resize(problem.nodes.size());
    outputs_.resize(problem.nodes.size());
    for (uint32_t t = 0; t < problem.tensors.size(); ++t) {
      outputs_[problem.tensors[t].maker].push_back(t);
      for (const uint32_t user : problem.tensors[t].users) inputs_[user].push_back(t);
    }
  }

  Result<double> seconds() const {
    ExchangeOptions options;
    options.links =
        std::make_shared<const EmulatedLinks>(emulated_links(Topology(problem_.system)));
    const auto devices = static_cast<int32_t>(problem_.devices());
    const std::unique_ptr<Transport> transport = HONE_TRY(make_thread_transport(devices, options));
    std::vector<Status> ends(static_cast<size_t>(devices));
    std::vector<std::thread> threads;
    const Clock::time_point start = Clock::now() + std::chrono::milliseconds(5);
    for (int32_t d = 0; d < devices; ++d)
      threads.emplace_back([&, d] { ends[static_cast<size_t>(d)] = work(*transport, d, start); });
    for (std::thread& thread : threads) thread.join();
    for (const Status& end : ends) HONE_TRY(end);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  static Channel channel(uint32_t from, uint32_t to, uint32_t tensor) {
    return {static_cast<int32_t>(from), static_cast<int32_t>(to), tensor};
  }

  Status work(Transport& transport, int32_t device, Clock::time_point start) const {
    const auto self = static_cast<uint32_t>(device);
    std::map<uint32_t, Ticket> arrives;
    std::map<uint32_t, std::vector<std::byte>> bytes;
    std::vector<Ticket> sent;
    for (uint32_t t = 0; t < problem_.tensors.size(); ++t) {
      const PlaceTensor& tensor = problem_.tensors[t];
      bytes[t].resize(static_cast<size_t>(tensor.bytes));
      const uint32_t from = placement_.device[tensor.maker];
      const std::vector<uint32_t> to = receivers(tensor, placement_);
      if (std::ranges::find(to, self) != to.end())
        arrives[t] = HONE_TRY(transport.receive(channel(from, self, t), bytes[t], "receive"));
    }
    std::this_thread::sleep_until(start);
    for (const uint32_t i : order_) {
      if (placement_.device[i] != self) continue;
      for (const uint32_t t : inputs_[i])
        if (const auto found = arrives.find(t); found != arrives.end()) {
          HONE_TRY(transport.wait(found->second));
          arrives.erase(found);
        }
      const double takes = problem_.nodes[i].seconds[judge_.devices()[self].target];
      std::this_thread::sleep_for(std::chrono::duration<double>(takes));
      for (const uint32_t t : outputs_[i])
        for (const uint32_t to : receivers(problem_.tensors[t], placement_))
          sent.push_back(HONE_TRY(transport.send(channel(self, to, t), bytes[t], "send")));
    }
    for (const Ticket ticket : sent) HONE_TRY(transport.wait(ticket));
    return {};
  }

  const PlaceProblem& problem_;
  const PlaceJudge& judge_;
  const DevicePlacement& placement_;
  std::vector<uint32_t> order_;
  std::vector<std::vector<uint32_t>> inputs_, outputs_;
};

// Plans of a wide range of times: good ones, and those that are drawn over more and more nodes.
std::vector<DevicePlacement> spread_plans(const PlaceJudge& judge, Rng& rng) {
  const PlaceUnits units(judge);
  const DevicePlacement best =
      place(judge, {.by = "annealing", .seconds = 1e9, .trials = 500}).value().placement;
  std::vector<DevicePlacement> plans;
  for (int k = 0; k < 20; ++k) {
    std::vector<uint32_t> device = units.devices_of(best);
    for (size_t u = 0; u < device.size(); ++u)
      if (rng.chance(k / 19.0)) device[u] = rng.pick(units.units()[u].devices);
    plans.push_back(units.placement(device));
  }
  return plans;
}

Status measured(benchmark::State& state, int64_t devices) {
  Rng rng(static_cast<uint64_t>(devices));
  PlaceProblem problem = make_place(
      {.family = PlaceFamily::layers, .devices = devices, .nodes = 40, .traffic = 0.7}, rng);
  for (PlaceNode& node : problem.nodes)
    for (double& seconds : node.seconds) seconds *= 5;  // far above what a wake-up takes
  for (PlaceTensor& tensor : problem.tensors) tensor.bytes = std::floor(5 * tensor.bytes);
  const PlaceJudge judge(problem);
  std::vector<double> told, timed;
  double over = 0;
  for (const DevicePlacement& plan : spread_plans(judge, rng)) {
    const PlaceTimeline timeline = HONE_TRY(judge.timeline(plan));
    const ClockRun run(problem, judge, plan, timeline);
    std::vector<double> each;
    for (int repeat = 0; repeat < 3; ++repeat) each.push_back(HONE_TRY(run.seconds()));
    std::ranges::sort(each);
    told.push_back(timeline.seconds());
    timed.push_back(each[1]);
    over += each[1] / timeline.seconds() / 20;
  }
  state.counters["tau"] = kendall_tau(told, timed);
  state.counters["over"] = over;
  state.counters["least_ms"] = 1e3 * std::ranges::min(timed);
  state.counters["most_ms"] = 1e3 * std::ranges::max(timed);
  return {};
}

void by_the_clock(benchmark::State& state, int64_t devices) {
  for (auto _ : state)
    if (const Status done = measured(state, devices); !done.ok())
      return state.SkipWithError(done.error().what().c_str());
}

const bench::Rows figure_rows([] {
  const auto add = [](std::string_view name, int64_t number, auto row) {
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, number).c_str(),
                                 [=](benchmark::State& state) { row(state, number); })
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  };
  for (const int64_t nodes : {10'000, 80'000}) add("zero_shot", nodes, zero_shot);
  for (int64_t k = 0; k < 6; ++k) add("joint", k, joint);
  for (const int64_t count : {4, 8}) add("chips", count, chips);
  for (const int64_t devices : {2, 3, 4}) add("measured", devices, by_the_clock);
});

}  // namespace
}  // namespace hone::HONE_FILE
