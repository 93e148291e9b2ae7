// What a graph of 100,000 nodes costs: to build, verify, print, parse, hash and copy.

#include "ir/functional.h"
#include "ir/text.h"

#include <benchmark/benchmark.h>

#include <cstdint>

namespace hone::HONE_FILE {
namespace {

// Blocks of a dozen ops over a few shapes, every result named, as an import would give.
Graph make_graph(int64_t nodes) {
  Graph graph("bench");
  graph.reserve(static_cast<size_t>(nodes));
  Type type = Type::get(DType::f32, {8, 64});
  ValueId x = graph.add_parameter(type, "x");
  ValueId w = graph.add_parameter(Type::get(DType::f32, {64, 64}), "w");
  const Op steps[] = {Op::get(Opcode::dot, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}}),
                      Op::get(Opcode::add),
                      Op::get(Opcode::tanh),
                      Op::get(Opcode::transpose, {{"permutation", Ints{1, 0}}}),
                      Op::get(Opcode::transpose, {{"permutation", Ints{1, 0}}}),
                      Op::get(Opcode::mul),
                      Op::get(Opcode::reduce, {{"kind", "sum"}, {"axes", Ints{1}}}),
                      Op::get(Opcode::broadcast, {{"dims", Dims{8, 64}}, {"map", Ints{0}}}),
                      Op::get(Opcode::max)};
  ValueId other = x;  // the last value of the type but one
  for (int64_t i = 2; i < nodes; ++i) {
    const Op op = steps[static_cast<size_t>(i - 2) % std::size(steps)];
    const ValueId operands[] = {x, op.opcode() == Opcode::dot ? w : other};
    const bool two = operand_arity(op.def()).min == 2;
    NodeId n = graph.append(op, {operands, two ? size_t{2} : size_t{1}}).value();
    if (graph.type(x) == type) other = x;
    x = graph.result(n);
    graph.set_name(x, fmt::format("block{}/v{}", i / 16, i));
  }
  graph.set_outputs({x});
  return graph;
}

constexpr int64_t kLarge = 100'000;

void build(benchmark::State& state) {
  for (auto _ : state) {
    Graph graph = make_graph(kLarge);
    state.counters["bytes_per_node"] =
        static_cast<double>(graph.memory_bytes()) / static_cast<double>(graph.node_count());
  }
}
BENCHMARK(build)->Unit(benchmark::kMillisecond);

void verify_graph(benchmark::State& state) {
  Graph graph = make_graph(kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(verify(graph).ok());
}
BENCHMARK(verify_graph)->Unit(benchmark::kMillisecond);

void print_graph(benchmark::State& state) {
  Graph graph = make_graph(kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(print(graph));
}
BENCHMARK(print_graph)->Unit(benchmark::kMillisecond);

void parse_text(benchmark::State& state) {
  std::string text = print(make_graph(kLarge));
  for (auto _ : state) benchmark::DoNotOptimize(parse_graph(text).ok());
}
BENCHMARK(parse_text)->Unit(benchmark::kMillisecond);

void hash_graph(benchmark::State& state) {
  Graph graph = make_graph(kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(structural_hash(graph));
}
BENCHMARK(hash_graph)->Unit(benchmark::kMillisecond);

void copy_graph(benchmark::State& state) {
  Graph graph = make_graph(state.range(0));
  for (auto _ : state) {
    Graph copy = graph;
    benchmark::DoNotOptimize(copy.node_count());
  }
}
BENCHMARK(copy_graph)->Arg(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hone::HONE_FILE
