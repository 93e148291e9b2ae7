// What expanding and raising the composites of a large network costs.

#include <benchmark/benchmark.h>

#include "rewrite/passes.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

constexpr int64_t kLayers = 1000;

Graph transformer() {
  return build_zoo_model("gpt2", {.size = ZooSize::tiny, .depth = kLayers}).value();
}

void expand(benchmark::State& state) {
  const Graph graph = transformer();
  for (auto _ : state) benchmark::DoNotOptimize(expand_composites(graph).ok());
}
BENCHMARK(expand)->Unit(benchmark::kMillisecond);

void raise(benchmark::State& state) {
  const Graph graph = expand_composites(transformer()).value();
  for (auto _ : state) benchmark::DoNotOptimize(raise_composites(graph).ok());
  state.counters["nodes"] = static_cast<double>(graph.node_count());
}
BENCHMARK(raise)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone
