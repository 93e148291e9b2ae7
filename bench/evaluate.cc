#include <benchmark/benchmark.h>

#include "ir/reference/evaluate.h"
#include "ir/text.h"

// The reference evaluator: elements per second of elementwise nodes, steps per second of loops.

namespace hone::HONE_FILE {
namespace {

void evaluate_text(benchmark::State& state, std::string_view text, int64_t items) {
  Graph graph = *parse_graph(text);
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) inputs.push_back(Tensor::zeros(type));
  for (auto _ : state) {
    Result<std::vector<Tensor>> outputs = evaluate(graph, inputs);
    if (!outputs.ok()) return state.SkipWithError(outputs.error().to_string().c_str());
  }
  state.SetItemsProcessed(state.iterations() * items);
}

// Eight nodes of 2^22 elements; reading the input and writing the output are a small part.
void elementwise(benchmark::State& state, std::string_view op, std::string_view dtype) {
  std::string text = fmt::format("graph @g(%x0: {}[4194304]) {{", dtype);
  for (int i = 0; i < 8; ++i) text += fmt::format(" %x{} = {} %x{}, %x{}", i + 1, op, i, i);
  evaluate_text(state, text + " return %x8 }", int64_t{8} << 22);
}
BENCHMARK_CAPTURE(elementwise, add_f32, "add", "f32")->UseRealTime();
BENCHMARK_CAPTURE(elementwise, max_f32, "max", "f32")->UseRealTime();
BENCHMARK_CAPTURE(elementwise, add_i8, "add", "i8")->UseRealTime();
BENCHMARK_CAPTURE(elementwise, pow_f32, "pow", "f32")->UseRealTime();

void scan_steps(benchmark::State& state) {
  evaluate_text(state,
                "graph @g(%i: f32[64], %x: f32[10000, 64]) { %f, %y = scan %i, %x {carried = 1}"
                " body(%s: f32[64], %e: f32[64]) { %n = add %s, %e return %n, %n } return %f, %y }",
                10000);
}
BENCHMARK(scan_steps)->UseRealTime();

void small_nodes(benchmark::State& state) {
  std::string text = "graph @g(%x0: f32[]) {";
  for (int i = 0; i < 10000; ++i) text += fmt::format(" %x{} = neg %x{}", i + 1, i);
  evaluate_text(state, text + " return %x10000 }", 10000);
}
BENCHMARK(small_nodes)->UseRealTime();

}  // namespace
}  // namespace hone::HONE_FILE
