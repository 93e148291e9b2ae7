// What expanding and raising the composites of a large network costs.

#include <benchmark/benchmark.h>

#include "ir/functional.h"
#include "ir/passes/passes.h"

namespace hone {
namespace {

Value block(Builder& b, Value x) {
  auto weight = [&](const Dims& dims) { return b.parameter("", DType::f32, dims); };
  auto heads = [](Value v) {
    return transpose(reshape(v, {v.dim(0), v.dim(1), 2, 4}), {0, 2, 1, 3});
  };
  Value n = layer_norm(x, weight({8}), weight({8}));
  const Value qkv[] = {heads(matmul(n, weight({8, 8}))), heads(matmul(n, weight({8, 8}))),
                       heads(matmul(n, weight({8, 8})))};
  Value a = reshape(transpose(b.op(Opcode::attention, qkv), {0, 2, 1, 3}), x.dims());
  x = x + matmul(a, weight({8, 8}));
  Value m = rms_norm(x, weight({8}));
  return x + matmul(gelu(matmul(m, weight({8, 16}))), weight({16, 8}));
}

Graph transformer(int layers) {
  Builder b("transformer");
  Value x = b.parameter("x", DType::f32, {2, 5, 8});
  for (int i = 0; i < layers; ++i) x = block(b, x);
  return b.finish({x}).value();
}

constexpr int kLayers = 1000;  // some 80,000 nodes when expanded

void expand(benchmark::State& state) {
  const Graph graph = transformer(kLayers);
  for (auto _ : state) benchmark::DoNotOptimize(expand_composites(graph).ok());
}
BENCHMARK(expand)->Unit(benchmark::kMillisecond);

void raise(benchmark::State& state) {
  const Graph graph = expand_composites(transformer(kLayers)).value();
  for (auto _ : state) benchmark::DoNotOptimize(raise_composites(graph).ok());
  state.counters["nodes"] = static_cast<double>(graph.node_count());
}
BENCHMARK(raise)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone
