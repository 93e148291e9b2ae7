#include "program/build/kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"
#include "zoo/random/random_graph.h"

namespace hone {
namespace {

void check_node(const Graph& graph, NodeId node, const std::vector<Tensor>& values,
                const Target& target) {
  SCOPED_TRACE(graph.describe(node) + " " + graph.op(node).attrs_to_string());
  const std::vector<Type> operands = graph.operand_types(node), results = graph.result_types(node);
  Result<TileProgram> program = build_generic({graph.op(node), operands}, "k");
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  std::vector<Tensor> inputs;
  for (ValueId operand : graph.operands(node))
    if (!operand.is_none()) inputs.push_back(values[operand.index]);
  Result<std::vector<Tensor>> actual = run_native(*program, inputs, target, 2);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string() << print(*program);
  for (size_t i = 0; i < results.size(); ++i) {
    Result<Comparison> comparison = compare((*actual)[i], values[graph.result(node, i).index],
                                            default_tolerance(results[i].dtype()));
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed())
        << comparison->to_string() << print(*program)
        << compile_tiles(*program, target, "kernel", CodeForm::mlir).value();
  }
}

void check_random(uint64_t first, uint64_t count, std::set<Opcode>* seen) {
  const std::vector<Target> targets = host_targets();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .max_elements = 64});
    const std::vector<Tensor> values = all_values(graph, random_graph_inputs(graph, seed));
    for (NodeId node : graph.nodes()) {
      if (!is_kernel(graph.opcode(node))) continue;
      SCOPED_TRACE(seed);
      seen->insert(graph.opcode(node));
      check_node(graph, node, values, targets[seed % targets.size()]);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(NativeGenericKernels, ComputeWhatTheReferenceDoes) {
  std::set<Opcode> seen;
  check_random(0, 40, &seen);
}

TEST(NativeGenericKernels, DISABLED_SweepRandomGraphs) {
  std::set<Opcode> seen;
  check_random(100'000, 2'000, &seen);
}

}  // namespace
}  // namespace hone
