#include "program/build/kernel.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/program/kernel_testing.h"
#include "zoo/random/random_graph.h"

namespace hone {
namespace {

// Builds the node, and checks text, proof of bounds, and both orders of its points.
void check_node(const Graph& graph, NodeId node, const std::vector<Tensor>& values) {
  SCOPED_TRACE(graph.describe(node) + " " + graph.op(node).attrs_to_string());
  const std::vector<Type> operands = graph.operand_types(node), results = graph.result_types(node);
  Result<TileProgram> program = build_generic({graph.op(node), operands}, "k");
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const std::string text = print(*program);
  SCOPED_TRACE(text);
  Status status = verify(*program);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  Result<TileProgram> again = parse_tiles(text);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(print(*again), text);

  std::vector<Tensor> inputs;
  for (ValueId operand : graph.operands(node))
    if (!operand.is_none()) inputs.push_back(values[operand.index]);
  for (bool backwards : {false, true}) {
    Result<std::vector<Tensor>> actual = interpret(*again, inputs, {.backwards = backwards});
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& expected = values[graph.result(node, i).index];
      Result<Comparison> comparison =
          compare((*actual)[i], expected, default_tolerance(results[i].dtype()));
      ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
      EXPECT_TRUE(comparison->passed()) << comparison->to_string();
    }
  }
}

void check_random(uint64_t first, uint64_t count, std::set<Opcode>* seen) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .max_elements = 64});
    const std::vector<Tensor> values = all_values(graph, random_graph_inputs(graph, seed));
    for (NodeId node : graph.nodes()) {
      if (!is_kernel(graph.opcode(node))) continue;
      SCOPED_TRACE(seed);
      seen->insert(graph.opcode(node));
      check_node(graph, node, values);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(GenericKernels, ComputeWhatTheReferenceDoes) {
  std::set<Opcode> seen;
  check_random(0, legal_pairs().size(), &seen);
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(seen.contains(opcode), is_kernel(opcode)) << name(opcode);
  }
}

TEST(GenericKernels, DISABLED_SweepRandomGraphs) {
  std::set<Opcode> seen;
  check_random(100'000, 20'000, &seen);
}

TEST(GenericKernels, RefuseWhatIsNoKernel) {
  const Type f32 = Type::get(DType::f32, {2, 3});
  const Type types[] = {f32};
  const Op softmax = Op::get(Opcode::softmax, {{"axis", int64_t{1}}});
  Result<TileProgram> program = build_generic({softmax, types}, "k");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().to_string(), "error: softmax is no kernel");
}

}  // namespace
}  // namespace hone
