// What plans and prices cost: completing and checking plans of large graphs, pricing a schedule.

#include <benchmark/benchmark.h>

#include "cost/kernel_price.h"
#include "ir/text.h"
#include "plan/prepare.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "zoo/zoo.h"

namespace hone {
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

template <Graph (*make)()>
void check_plan(benchmark::State& state) {
  const Graph graph = prepare(make()).value();
  const Target target = host_target().value();
  const Plan plan = complete(graph, {}, target).value();
  for (auto _ : state) benchmark::DoNotOptimize(check_complete(plan, graph, target).ok());
}
BENCHMARK(check_plan<unrolled>)->Unit(benchmark::kMillisecond);

// Random schedules of a convolution with its epilogue, one thread.
void price_schedule(benchmark::State& state) {
  const Graph graph = parse_graph(R"(
graph @g(%x: f32[1, 64, 56, 56], %w: f32[64, 64, 3, 3], %b: f32[64]) -> f32[1, 64, 56, 56] {
  %c = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %e = broadcast %b {dims = [1, 64, 56, 56], map = [1]}
  %a = add %c, %e
  %y = tanh %a
  return %y
})")
                          .value();
  const NodeId nodes[] = {NodeId{3}, NodeId{4}, NodeId{5}, NodeId{6}};
  const KernelBody body = body_of(graph, nodes, {});
  const Target target = host_target().value();
  const KernelPrice price(body, target, target.cores);
  Rng rng(1);
  std::vector<Schedule> schedules;
  for (int i = 0; i < 256; ++i) schedules.push_back(random_schedule(body, target, rng));
  size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(price.seconds(schedules[next++ % 256]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(price_schedule);

}  // namespace
}  // namespace hone
