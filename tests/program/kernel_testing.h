#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "ir/builder.h"
#include "ir/reference/evaluate.h"
#include "kernel/kernel_body.h"
#include "kernel/prepared.h"
#include "kernel/schedule_text.h"
#include "oracle/compare.h"
#include "oracle/special_judge.h"
#include "program/build/kernel.h"
#include "program/tiles/bind.h"
#include "program/tiles/interpret.h"
#include "zoo/random/random_graph.h"

namespace hone {

// The values of all nodes, each rounded to its type.
inline std::vector<Tensor> all_values(Graph graph, std::span<const Tensor> inputs) {
  std::vector<ValueId> values;
  for (uint32_t v = 0; v < graph.value_count(); ++v) values.push_back({v});
  graph.set_outputs(values);
  return evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
}

// The generic algorithm makes kernels of these.
inline bool is_kernel(Opcode opcode) {
  if (opcode == Opcode::parameter || opcode == Opcode::constant || is_composite(opcode))
    return false;
  return op_def(opcode).access != nullptr || is_elementwise(opcode);
}

// The tensor as it lies in memory.
inline Tensor stored(const Tensor& tensor, const Layout& layout) {
  if (layout.is_row_major()) return tensor;
  const Type type = stored_type(layout, tensor.type());
  const Ints dims = tensor.type().static_dims(), stored_dims = type.static_dims();
  const std::vector<IndexExpr> index = stored_index(layout, identity_index(tensor.type().rank()));
  std::vector<double> reals(static_cast<size_t>(tensor.elements()));
  std::vector<int64_t> integers(reals.size());
  Ints at(dims.size());
  for (int64_t e = 0; e < tensor.elements(); ++e) {
    int64_t rest = e, place = 0;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) at[d] = rest % dims[d];
    for (size_t i = 0; i < index.size(); ++i) place = place * stored_dims[i] + index[i].at(at);
    if (is_real(tensor.dtype()))
      reals[static_cast<size_t>(place)] = tensor.real_at(e);
    else
      integers[static_cast<size_t>(place)] = tensor.integer_at(e);
  }
  return is_real(tensor.dtype()) ? Tensor::from_reals(type, reals)
                                 : Tensor::from_integers(type, integers);
}

// Dims in any order, some of them in blocks.
inline Layout random_layout(Type type, Rng& rng) {
  Layout layout = Layout::row_major(type.rank());
  for (int dim = 0; dim < type.rank(); ++dim) {
    const int64_t block = rng.between(2, 16);
    const bool has_room = layout.parts.size() < static_cast<size_t>(kMaxRank);
    if (!has_room || !rng.chance(0.4) || !type.dim(dim).divisible_by(block)) continue;
    layout.parts[static_cast<size_t>(dim)].block = block;
    layout.parts.push_back({.dim = dim, .block = block, .is_inner = true});
  }
  if (rng.chance(0.7)) rng.shuffle(layout.parts);
  return layout;
}

// `slack`: a multiple of the default tolerance.
inline void expect_close(std::span<const Tensor> actual, std::span<const Tensor> expected,
                         double slack = 1) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    Tolerance tolerance = default_tolerance(expected[i].dtype());
    tolerance = {tolerance.relative * slack, tolerance.absolute * slack};
    Result<Comparison> comparison = compare(actual[i], expected[i], tolerance);
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed()) << comparison->to_string();
  }
}

// The check of a kernel on special numbers.
inline void expect_specials(const Graph& graph, std::span<const Tensor> inputs,
                            std::span<const Tensor> actual) {
  const Result<std::vector<Difference>> differences =
      differences_of_specials(graph, inputs, actual);
  ASSERT_TRUE(differences.ok()) << differences.error().to_string();
  for (const Difference& one : *differences)
    EXPECT_TRUE(one.is_undecided) << "output " << one.output << ": " << one.what;
}

// Special numbers for one seed in four.
inline Specials specials_of(uint64_t seed) {
  Rng rng(seed);
  return seed % 4 == 3 ? Specials::drawn(rng) : Specials();
}

// Checks text, proof of bounds, and both orders of points.
inline void check_program(const Result<TileProgram>& program, std::span<const Tensor> inputs,
                          std::span<const Tensor> expected, double slack = 1) {
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const std::string text = print(*program);
  SCOPED_TRACE(text);
  Status status = verify(*program);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  Result<TileProgram> again = parse_tiles(text);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(print(*again), text);
  for (bool backwards : {false, true}) {
    Result<std::vector<Tensor>> actual = interpret(*again, inputs, {.backwards = backwards});
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    expect_close(*actual, expected, slack);
  }
}

// Builds the kernel, and holds it against the reference.
inline void check_kernel(const KernelBody& body, const Schedule& schedule,
                         const std::vector<Tensor>& inputs, double slack = 1) {
  SCOPED_TRACE(print(schedule));
  std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = stored(expected[i], body.outputs[i]);
  std::vector<Tensor> memory;
  for (size_t i = 0; i < inputs.size(); ++i) memory.push_back(stored(inputs[i], body.inputs[i]));
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  check_program(build_kernel(body, schedule, "k"), memory, expected, slack);
}

// The same on special numbers, of a body that is row-major.
inline void check_on_specials(const KernelBody& body, const Schedule& schedule,
                              const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(print(schedule));
  std::vector<Tensor> memory = inputs;
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  const Result<TileProgram> program = build_kernel(body, schedule, "k");
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  SCOPED_TRACE(print(*program));
  const Result<std::vector<Tensor>> actual = interpret(*program, memory, {});
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  expect_specials(body.graph, inputs, *actual);
}

// A layout for each input and output. None where numbers are special: their judge compares tensors
// as they are.
inline void draw_layouts(KernelBody& body, const Specials& specials, Rng& rng) {
  if (specials.any()) return;
  for (size_t i = 0; i < body.inputs.size(); ++i)
    body.inputs[i] = random_layout(body.graph.type(body.graph.inputs()[i]), rng);
  for (size_t i = 0; i < body.outputs.size(); ++i)
    body.outputs[i] = random_layout(body.graph.type(body.graph.outputs()[i]), rng);
}

// The same of a kernel with open sizes, for these.
inline void check_open_kernel(const KernelBody& body, const Schedule& schedule,
                              const Bindings& sizes, const std::vector<Tensor>& inputs,
                              double slack = 1) {
  SCOPED_TRACE(print(schedule));
  const Result<TileProgram> program = build_kernel(body, schedule, "k");
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const Status status = verify(*program);
  ASSERT_TRUE(status.ok()) << status.error().to_string() << print(*program);
  std::vector<Tensor> memory = inputs;
  if (const std::optional<PreparedInput> prepared = prepared_input(body, schedule))
    memory[prepared->parameter] = prepared->value(inputs[prepared->parameter]);
  const std::vector<Tensor> expected =
      evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
  check_program(specialize(*program, sizes), memory, expected, slack);
}

// A node of a random graph as a kernel of its own.
struct NodeKernel {
  Opcode opcode;
  uint64_t seed;  // of its graph
  Result<TileProgram> program;
  Graph graph;
  std::vector<Tensor> inputs, expected;
  bool is_special;  // some numbers are
};

inline void expect_outputs(const NodeKernel& kernel, std::span<const Tensor> actual) {
  if (kernel.is_special)
    expect_specials(kernel.graph, kernel.inputs, actual);
  else
    expect_close(actual, kernel.expected);
}

inline Graph graph_of_node(const Graph& graph, NodeId node) {
  Builder b("node");
  std::vector<Value> operands;
  for (ValueId operand : graph.operands(node))
    operands.push_back(operand.is_none() ? Value() : b.parameter("", graph.type(operand)));
  return b.finish(b.ops(graph.op(node), operands)).value();
}

// Calls check for each, until one fails.
inline void each_node_kernel(uint64_t first, uint64_t count,
                             const std::function<void(const NodeKernel&)>& check) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const Specials specials = specials_of(seed);
    const Graph graph =
        random_graph({.seed = seed, .max_steps = 10, .max_elements = 64, .specials = specials});
    const std::vector<Tensor> values =
        all_values(graph, random_graph_inputs(graph, seed, specials));
    for (NodeId node : graph.nodes()) {
      if (!is_kernel(graph.opcode(node))) continue;
      SCOPED_TRACE(graph.describe(node) + " " + graph.op(node).attrs_to_string());
      const std::vector<Type> operands = graph.operand_types(node);
      NodeKernel kernel = {.opcode = graph.opcode(node),
                           .seed = seed,
                           .program = build_generic({graph.op(node), operands}, "k"),
                           .graph = graph_of_node(graph, node),
                           .inputs = {},
                           .expected = {},
                           .is_special = specials.any()};
      for (ValueId operand : graph.operands(node))
        if (!operand.is_none()) kernel.inputs.push_back(values[operand.index]);
      for (ValueId result : graph.results(node)) kernel.expected.push_back(values[result.index]);
      check(kernel);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace hone
