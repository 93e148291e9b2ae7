// What plans and prices cost: completing and checking plans of large graphs, pricing a schedule.

#include <benchmark/benchmark.h>

#include <chrono>

#include "cost/analytic.h"
#include "cost/analytic_kernel.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "planner/complete_once.h"
#include "planner/few_plans.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

// 88,000 nodes.
Graph unrolled() { return build_zoo_model("lstm", {.length = 2200, .unroll = true}).value(); }
Graph resnet() { return build_zoo_model("resnet50").value(); }

template <Graph (*make)()>
void prepare_graph(benchmark::State& state) {
  const Graph graph = make();
  for (auto _ : state) benchmark::DoNotOptimize(prepare(graph).ok());
}
BENCHMARK(prepare_graph<resnet>)->Unit(benchmark::kMillisecond);
BENCHMARK(prepare_graph<unrolled>)->Unit(benchmark::kMillisecond);

template <Graph (*make)()>
void complete_plan(benchmark::State& state) {
  const Graph graph = prepare(make()).value();
  const Target target = host_target().value();
  for (auto _ : state) benchmark::DoNotOptimize(complete(graph, {}, target).ok());
  state.counters["nodes"] = static_cast<double>(graph.node_count());
}
BENCHMARK(complete_plan<resnet>)->Unit(benchmark::kMillisecond);
BENCHMARK(complete_plan<unrolled>)->Unit(benchmark::kMillisecond);

Graph squeezenet() { return build_zoo_model("squeezenet").value(); }

// A model of whole plans asks for a few plans and their graphs: "times_as_long" as for one plan is
// to be 2 at most.
template <Graph (*make)()>
void few_plans_beside_one(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const Graph graph = prepare(make()).value();
  const Target target = host_target().value();
  const AnalyticCost cost(target);
  std::chrono::duration<double> one{}, few{};
  for (auto _ : state) {
    const auto began = Clock::now();
    benchmark::DoNotOptimize(complete_once(graph, {}, target, cost, {}).ok());
    const auto middle = Clock::now();
    const std::vector<Plan> plans =
        few_plans(graph, {}, target, cost, variants_for(graph, {})).value();
    for (const Plan& plan : plans)
      benchmark::DoNotOptimize(described_plan(graph, plan, target, cost).ok());
    one += middle - began;
    few += Clock::now() - middle;
  }
  state.counters["times_as_long"] = few / one;
}
BENCHMARK(few_plans_beside_one<resnet>)->Unit(benchmark::kMillisecond);
BENCHMARK(few_plans_beside_one<squeezenet>)->Unit(benchmark::kMillisecond);

// ---- Large graphs -------------------------------------------------------------------------------

Type square() { return Type::get(DType::f32, {64, 64}); }

// Of about `count` nodes: tanh and add in turns, each reads the one before.
Graph chain(int64_t count) {
  Graph graph;
  const Type type = square();
  const ValueId x = graph.add_parameter(type);
  ValueId v = x;
  for (int64_t i = 0; i < count; ++i) {
    const ValueId both[] = {v, x};
    v = graph.result(i % 2 == 0 ? graph.append(Op::get(Opcode::tanh), {&v, 1}).value()
                                : graph.append(Op::get(Opcode::add), both).value());
  }
  graph.set_outputs({v});
  return graph;
}

// Trees of 64 leaves, of two-sided ops with transposes in between, each of a random shape of its
// own.
Graph forest(int64_t count) {
  constexpr int64_t kLeaves = 64;
  constexpr Opcode kOps[] = {Opcode::add, Opcode::mul, Opcode::max, Opcode::sub};
  Graph graph;
  Rng rng(1);
  std::vector<ValueId> roots;
  const Type type = square();
  const Op transpose = Op::get(Opcode::transpose, {{"permutation", Ints{1, 0}}});
  while (static_cast<int64_t>(graph.node_count()) < count) {
    std::vector<ValueId> open;
    for (int64_t i = 0; i < kLeaves; ++i) open.push_back(graph.add_parameter(type));
    while (open.size() > 1) {
      rng.shuffle(open);
      const ValueId both[] = {open[open.size() - 1], open[open.size() - 2]};
      open.pop_back();
      open.back() = graph.result(graph.append(Op::get(rng.pick(kOps)), both).value());
      if (rng.chance(0.2))
        open.back() = graph.result(graph.append(transpose, {&open.back(), 1}).value());
    }
    roots.push_back(open[0]);
  }
  graph.set_outputs(roots);
  return graph;
}

// One value that all others are made of.
Graph fan_out(int64_t count) {
  Graph graph;
  const Type type = square();
  const ValueId x = graph.add_parameter(type);
  std::vector<ValueId> results;
  for (int64_t i = 0; i < count / 2; ++i) {
    const ValueId both[] = {x, graph.add_parameter(type)};
    results.push_back(graph.result(graph.append(Op::get(Opcode::mul), both).value()));
  }
  graph.set_outputs(results);
  return graph;
}

// In time near the number of nodes: "per_node" stays.
template <Graph (*make)(int64_t)>
void complete_large(benchmark::State& state) {
  const Graph graph = prepare(make(state.range(0))).value();
  const Target target = host_target().value();
  for (auto _ : state) benchmark::DoNotOptimize(complete(graph, {}, target).ok());
  const auto nodes = static_cast<double>(graph.node_count());
  state.counters["nodes"] = nodes;
  state.counters["per_node"] = benchmark::Counter(
      nodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(complete_large<chain>)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(complete_large<forest>)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(complete_large<fan_out>)
    ->RangeMultiplier(10)
    ->Range(1'000, 100'000)
    ->Unit(benchmark::kMillisecond);

template <Graph (*make)()>
void check_plan(benchmark::State& state) {
  const Graph graph = prepare(make()).value();
  const Target target = host_target().value();
  const Plan plan = complete(graph, {}, target).value();
  for (auto _ : state) benchmark::DoNotOptimize(check_complete(plan, graph, target).ok());
}
BENCHMARK(check_plan<unrolled>)->Unit(benchmark::kMillisecond);

constexpr std::string_view kBodies[] = {
    R"(graph @conv(%x: f32[1, 64, 56, 56], %w: f32[64, 64, 3, 3], %b: f32[64])
    -> f32[1, 64, 56, 56] {
  %c = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %e = broadcast %b {dims = [1, 64, 56, 56], map = [1]}
  %a = add %c, %e
  %y = tanh %a
  return %y
})",
    R"(graph @product(%x: f32[1008, 1024], %w: f32[1024, 1024]) -> f32[1008, 1024] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})",
    R"(graph @softmax(%x: f32[512, 1024]) -> f32[512, 1024] {
  %y = softmax %x {axis = 1}
  return %y
})",
    R"(graph @pool(%x: f32[1, 64, 112, 112]) -> f32[1, 64, 56, 56] {
  %y = window_reduce %x {kind = max, window = [1, 1, 2, 2], stride = [1, 1, 2, 2]}
  return %y
})",
    R"(graph @transposed(%x: f32[1024, 512]) -> f32[512, 1024] {
  %t = transpose %x {permutation = [1, 0]}
  %y = exp %t
  return %y
})",
    R"(graph @attention(%q: f32[12, 256, 64], %k: f32[12, 256, 64], %v: f32[12, 256, 64])
    -> f32[12, 256, 64] {
  %s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
  %p = softmax %s {axis = 2}
  %y = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
  return %y
})",
    R"(graph @products(%x: f32[512, 256], %w: f32[256, 1024], %v: f32[1024, 256])
    -> f32[512, 256] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %t = tanh %h
  %y = dot %t, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
})"};
constexpr size_t kFirstChain = 5;  // From here on, bodies are priced as chains, the others never.

// Random schedules of one body, on one thread. Bodies are what graphs are made of, each as one
// kernel; the slowest to price is what a search can count on.
void price_schedule(benchmark::State& state) {
  const auto number = static_cast<size_t>(state.range(0));
  const bool is_chains = number >= kFirstChain;
  const Graph graph = prepare(parse_graph(kBodies[number]).value()).value();
  std::vector<NodeId> nodes;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter && graph.opcode(n) != Opcode::constant)
      nodes.push_back(n);
  const KernelBody body = body_of(graph, nodes, {});
  const Target target = host_target().value();
  AnalyticKernel price(std::make_shared<KernelFacts>(body), target, {}, target.cores);
  Rng rng(1);
  std::vector<Schedule> schedules;
  while (schedules.size() < 256) {
    Schedule schedule = random_schedule(body, target, rng);
    const bool is_chain = schedule.algorithm() == Algorithm::chain;
    if (is_chain == is_chains) schedules.push_back(std::move(schedule));
  }
  size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(price.seconds(schedules[next++ % 256]));
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(graph.name());
}
BENCHMARK(price_schedule)->DenseRange(0, std::size(kBodies) - 1);

}  // namespace
}  // namespace hone::HONE_FILE
