// Printing and parsing a graph of 100,000 nodes.

#include "ir/text.h"

#include <benchmark/benchmark.h>

namespace hone::HONE_FILE {
namespace {

using hone::Graph;
using hone::Op;
using hone::Opcode;
using hone::ValueId;

constexpr int64_t kNodes = 100000;

// A chain with a second operand some nodes back; every tenth value has a name.
Graph chain(int64_t nodes) {
  Graph graph("chain");
  hone::Symbol n = hone::Symbol::get("N", 1, 64);
  std::vector<ValueId> values = {
      graph.add_parameter(hone::Type::get(hone::DType::f32, {n, 784}), "x")};
  for (int64_t i = 1; i < nodes; ++i) {
    Opcode code = i % 3 == 0 ? Opcode::exp : i % 3 == 1 ? Opcode::add : Opcode::mul;
    std::vector<ValueId> operands = {values.back()};
    if (code != Opcode::exp) operands.push_back(values[static_cast<size_t>(i / 2)]);
    values.push_back(graph.result(*graph.append(Op::get(code), operands)));
    if (i % 10 == 0) graph.set_name(values.back(), fmt::format("layer{}/h", i));
  }
  graph.set_outputs({values.back()});
  return graph;
}

void print_graph(benchmark::State& state) {
  Graph graph = chain(kNodes);
  for (auto _ : state) benchmark::DoNotOptimize(hone::print(graph));
}
BENCHMARK(print_graph)->Unit(benchmark::kMillisecond);

void parse_graph(benchmark::State& state) {
  std::string text = hone::print(chain(kNodes));
  for (auto _ : state) benchmark::DoNotOptimize(hone::parse_graph(text).ok());
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) *
                          static_cast<int64_t>(state.iterations()));
}
BENCHMARK(parse_graph)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone::HONE_FILE
