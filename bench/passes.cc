// How long it takes to expand the composites of a large network.

#include <benchmark/benchmark.h>

#include "rewrite/passes.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
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

}  // namespace
}  // namespace hone::HONE_FILE
