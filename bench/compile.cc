// What compiling costs, from a graph to an image: cold, with a cache that is empty, and warm, with
// one that has the plan and all kernels. Counters: nodes, distinct kernels, seconds of the stages,
// and the most memory of the process at once (peak_mb), the model's weights included.

#include <benchmark/benchmark.h>

#include "base/file.h"
#include "compile/compilation.h"
#include "measure/timing.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

Graph resnet50() { return build_zoo_model("resnet50").value(); }
// 5,000 nodes.
Graph unrolled() { return build_zoo_model("lstm", {.length = 125, .unroll = true}).value(); }

template <Graph (*make)(), bool is_warm>
void compile(benchmark::State& state) {
  const Graph graph = make();
  const Target target = host_target().value();
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const auto cache = CompileCache::open(folder.path() / "cache").value();
  const auto compile_with = [&](CompileCache* used) {
    CompileOptions options{.cache = used};
    options.observer = [&](CompileStage stage, double seconds) {
      state.counters[std::string(name(stage))] += seconds;
    };
    Compilation compilation(graph, target, options);
    const Result<const Image*> image = compilation.image();
    if (!image.ok()) state.SkipWithError(image.error().what().c_str());
    return image.ok() ? (*image)->kernels.size() : 0;
  };
  if (is_warm) compile_with(cache.get());
  state.counters.clear();
  size_t kernels = 0;
  PeakMemory::start();
  for (auto _ : state) {
    if (!is_warm) cache->collect(0);
    kernels = compile_with(cache.get());
  }
  for (auto& [stage, seconds] : state.counters) seconds.flags = benchmark::Counter::kAvgIterations;
  state.counters["peak_mb"] = static_cast<double>(PeakMemory::bytes()) / (1 << 20);
  state.counters["nodes"] = static_cast<double>(graph.node_count());
  state.counters["distinct"] = static_cast<double>(kernels);
}
BENCHMARK(compile<resnet50, false>)
    ->Name("cold/resnet50")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(compile<resnet50, true>)
    ->Name("warm/resnet50")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(compile<unrolled, false>)
    ->Name("cold/unrolled")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(compile<unrolled, true>)
    ->Name("warm/unrolled")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace hone::HONE_FILE
