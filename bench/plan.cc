// Edits of plans and their prices: one changed layout in a large graph, joined groups, and a graph
// of which one node was rewritten. Each price is held to that of the lowered program.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cost/analytic.h"
#include "cost/plan_cost.h"
#include "cost/program_price.h"
#include "ir/graph_copy.h"
#include "plan/plan_space.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

const Target& target() {
  static const Target target = host_target().value();
  return target;
}
const Cost& cost() {
  static const AnalyticCost cost(target());
  return cost;
}

// What outlives plans, and how often a schedule was chosen.
struct Known {
  KernelStore store;
  ScheduleChooser chooser{target(), cost(), target().cores};
  int chosen = 0;

  PlanCost cost_of(PlanEditor& plan) {
    return {plan, cost(), store, [this](const std::shared_ptr<const KernelFacts>& facts, int64_t) {
              ++chosen;
              return Result<PricedSchedule>(*chooser.choose(facts).value());
            }};
  }
};

// The relative difference to the price of the program, with the schedules that were chosen.
double difference(const Graph& graph, PlanEditor& editor, PlanCost& price) {
  Plan plan = editor.to_plan();
  for (uint32_t s = 0; s < editor.main().planned().steps.size(); ++s)
    if (editor.main().planned().steps[s].is_kernel)
      plan.schedule[editor.main().kernel(s).hash] = price.schedule(editor.main(), s).value();
  plan.graph_hash = hash_without_weights(graph);
  const Program program = lower(graph, plan, target()).value();
  const double whole = hone::price(program, cost()).value().total();
  return std::abs(price.seconds().value() - whole) / whole;
}

// A planned graph of 10,000 nodes. What is done to it is undone.
struct Large {
  const Graph graph =
      prepare(build_zoo_model("lstm", {.length = 250, .unroll = true}).value()).value();
  const std::unique_ptr<PlanEditor> editor =
      PlanEditor::open(graph, complete(graph, {}, target()).value(), target()).value();
  Known known;
};
Large& large() {
  static Large large;
  return large;
}

// Changes one layout after another, prices each, and undoes it.
void relayout(benchmark::State& state, bool is_known) {
  const Graph& graph = large().graph;
  PlanEditor* const editor = large().editor.get();
  Known fresh;
  Known& known = is_known ? large().known : fresh;
  PlanCost price = known.cost_of(*editor);
  const double before = price.seconds().value();
  std::vector<std::pair<ValueId, Layout>> edits;
  for (const OpenEdit& edit : PlanSpace(editor->main()).edits(EditKind::layout)) {
    const ValueId v{edit.subject};
    if (graph.type(v).rank() < 2) continue;
    Layout layout = Layout::row_major(graph.type(v).rank());
    std::ranges::reverse(layout.parts);
    edits.emplace_back(v, layout);
  }
  if (is_known) {
    for (const auto& [v, layout] : edits) {
      const Undo undo = editor->main().set_layout(v, layout).value();
      benchmark::DoNotOptimize(price.seconds().value());
      editor->undo(undo);
    }
  }
  known.chosen = 0;
  std::vector<double> times;
  size_t next = 0;
  int most = 0;
  for (auto _ : state) {
    const auto& [v, layout] = edits[next++ % edits.size()];
    const int chosen = known.chosen;
    const Clock::time_point start = Clock::now();
    const Undo undo = editor->main().set_layout(v, layout).value();
    benchmark::DoNotOptimize(price.seconds().value());
    times.push_back(microseconds_since(start));
    most = std::max(most, known.chosen - chosen);
    editor->undo(undo);
    if (!is_known && next == edits.size()) break;
  }
  if (price.seconds().value() != before) state.SkipWithError("an undone edit changed the price");
  const Undo undo = editor->main().set_layout(edits[0].first, edits[0].second).value();
  state.counters["nodes"] = static_cast<double>(graph.node_count());
  state.counters["median_us"] = median(times);
  state.counters["chosen"] = known.chosen;
  state.counters["chosen_at_once"] = most;
  state.counters["difference"] = difference(graph, *editor, price);
  editor->undo(undo);
}

void relayout_known(benchmark::State& state) { relayout(state, true); }
void relayout_new(benchmark::State& state) { relayout(state, false); }
BENCHMARK(relayout_known)->Unit(benchmark::kMicrosecond);
BENCHMARK(relayout_new)->Unit(benchmark::kMicrosecond)->Iterations(50);

// Joins two groups, prices the plan, and undoes it.
void join_groups(benchmark::State& state) {
  PlanEditor* const editor = large().editor.get();
  const Undo places = editor->main().clear_offsets();
  PlanCost price = large().known.cost_of(*editor);
  benchmark::DoNotOptimize(price.seconds().value());
  const std::vector<OpenEdit> open = PlanSpace(editor->main()).edits(EditKind::join);
  std::vector<double> times;
  size_t next = 0;
  double accepted = 0;
  for (auto _ : state) {
    const OpenEdit& edit = open[next++ % open.size()];
    const Clock::time_point start = Clock::now();
    const Result<Undo> undo = editor->main().join(edit.subject, edit.other);
    times.push_back(microseconds_since(start));
    if (!undo.ok()) continue;
    ++accepted;
    editor->undo(*undo);
  }
  state.counters["median_us"] = median(times);
  editor->undo(places);
  state.counters["accepted"] = accepted / static_cast<double>(times.size());
}
BENCHMARK(join_groups)->Unit(benchmark::kMicrosecond);

// One relu becomes a tanh.
Graph rewritten(const Graph& graph, size_t number) {
  GraphCopy copy(graph);
  size_t seen = 0;
  for (NodeId n : graph.nodes()) {
    const bool is_it = graph.opcode(n) == Opcode::max && seen++ == number;
    if (!is_it) {
      HONE_CHECK(copy.node(n).ok(), "a node that was there");
      continue;
    }
    const ValueId x = copy(graph.operands(n)[0]);
    const ValueId y =
        copy.target().result(copy.target().append(Op::get(Opcode::tanh, {}), {&x, 1}).value());
    copy.target().set_name(y, graph.name(graph.result(n)));
    copy.replace(graph.result(n), y);
  }
  return copy.finish();
}

// ResNet-50 is known; of a rewritten one the plan is carried over by names and priced.
void rewritten_graph(benchmark::State& state) {
  const Graph graph = prepare(build_zoo_model("resnet50").value()).value();
  Known known;
  Plan plan = complete(graph, {}, target()).value();
  plan.schedule.clear();
  {
    const std::unique_ptr<PlanEditor> editor = PlanEditor::open(graph, plan, target()).value();
    benchmark::DoNotOptimize(known.cost_of(*editor).seconds().value());
  }
  plan.graph_hash = 0;
  // Kernels that the rewritten node is in have other hashes.
  std::vector<double> times;
  double most = 0;
  int most_chosen = 0;
  size_t next = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const Graph other = rewritten(graph, next++ % 40);
    const int chosen = known.chosen;
    state.ResumeTiming();
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<PlanEditor> editor = PlanEditor::open(other, plan, target()).value();
    PlanCost price = known.cost_of(*editor);
    benchmark::DoNotOptimize(price.seconds().value());
    times.push_back(microseconds_since(start));
    most = std::max(most, difference(other, *editor, price));
    most_chosen = std::max(most_chosen, known.chosen - chosen);
  }
  state.counters["median_ms"] = median(times) / 1000;
  state.counters["chosen_at_once"] = most_chosen;
  state.counters["difference"] = most;
}
BENCHMARK(rewritten_graph)->Unit(benchmark::kMillisecond)->Iterations(10);

}  // namespace
}  // namespace hone::HONE_FILE
