#include <algorithm>

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "ir/text.h"
#include "kernel/kernel_body.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }

// The nodes whose first results have these names.
std::vector<NodeId> nodes_of(const Graph& graph, std::initializer_list<std::string_view> names) {
  std::vector<NodeId> nodes;
  for (NodeId node : graph.nodes())
    for (std::string_view name : names)
      if (graph.name(graph.result(node)) == name) nodes.push_back(node);
  return nodes;
}

std::string refusal(const Graph& graph, std::initializer_list<std::string_view> names) {
  Status status = check_group(graph, nodes_of(graph, names));
  return status.ok() ? "" : status.error().to_string();
}

constexpr std::string_view kSoftmax = R"(
graph @softmax(%x: f32[8, 100]) -> f32[8, 100] {
  %m = reduce %x {kind = max, axes = [1]}
  %mb = broadcast %m {dims = [8, 100], map = [0]}
  %d = sub %x, %mb
  %e = exp %d
  %s = reduce %e {kind = sum, axes = [1]}
  %sb = broadcast %s {dims = [8, 100], map = [0]}
  %y = div %e, %sb
  return %y
}
)";

TEST(Groups, SoftmaxIsOne) {
  const Graph graph = graph_of(kSoftmax);
  EXPECT_EQ(refusal(graph, {"m", "mb", "d", "e", "s", "sb", "y"}), "");
  EXPECT_EQ(refusal(graph, {"mb", "d", "e"}), "");
  EXPECT_EQ(refusal(graph, {"m"}), "");
  EXPECT_THAT(refusal(graph, {"m", "mb", "e", "d", "s"}),
              says("%e ... f32[8, 100] ... %s ... f32[8] ... same dims"));
  EXPECT_THAT(refusal(graph, {"m", "y"}),
              says("%m ... f32[8] ... %y ... f32[8, 100] ... same dims"));
  EXPECT_THAT(refusal(graph, {"e", "sb", "y"}),
              says("node '%sb' (broadcast) ... node '%s' (reduce) ... group"));
}

TEST(Groups, ABodyHasPortsLayoutsAndConstantsOfOneElement) {
  const Graph graph = graph_of(R"(
graph @g(%x: f32[8, 16], %w: f32[16]) -> (f32[8, 16], f32[8, 16]) {
  %two = constant 2: f32[]
  %twos = broadcast %two {dims = [8, 16], map = []}
  %a = mul %x, %twos
  %wb = broadcast %w {dims = [8, 16], map = [1]}
  %b = add %a, %wb
  %c = tanh %b
  return %b, %c
}
)");
  const std::vector<NodeId> nodes = nodes_of(graph, {"twos", "a", "wb", "b", "c"});
  EXPECT_TRUE(check_group(graph, nodes).ok());
  std::vector<Layout> layouts(graph.value_count());
  layouts[graph.inputs()[0].index] = parse_layout("[1, 0]").value();
  const KernelBody body = body_of(graph, nodes, layouts);
  ASSERT_EQ(body.graph.inputs().size(), 2u);
  EXPECT_EQ(body.graph.name(body.graph.inputs()[0]), "x");
  EXPECT_EQ(body.graph.name(body.graph.inputs()[1]), "w");
  ASSERT_EQ(body.graph.outputs().size(), 2u);
  EXPECT_EQ(body.graph.name(body.graph.outputs()[1]), "c");
  EXPECT_EQ(print(body.inputs[0]), "[1, 0]");
  EXPECT_EQ(print(body.inputs[1]), "[0]");
  EXPECT_EQ(print(body.outputs[0]), "[0, 1]");
  EXPECT_TRUE(verify(body.graph).ok());

  const KernelBody plain = body_of(graph, nodes, {});
  EXPECT_NE(kernel_hash(body), kernel_hash(plain));
  Graph renamed = plain.graph;
  renamed.set_name(renamed.inputs()[0], "other");
  EXPECT_EQ(kernel_hash({renamed, plain.inputs, plain.outputs}), kernel_hash(plain));
}

TEST(Groups, RefusesWhatIsAloneOrGrowsTooMuch) {
  const Graph graph = graph_of(R"(
graph @g(%x: f32[64, 64], %w: f32[64, 64], %long: f32[2048, 64], %wide: f32[64, 2048])
    -> (f32[64, 64], f32[64, 64], f32[2048, 2048]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = dot %h, %w {lhs_contract = [1], rhs_contract = [0]}
  %s = sort %x {axis = 0}
  %n = neg %s
  %p = dot %long, %wide {lhs_contract = [1], rhs_contract = [0]}
  %q = dot %p, %p {lhs_contract = [1], rhs_contract = [0]}
  return %y, %n, %q
}
)");
  EXPECT_EQ(refusal(graph, {"h"}), "");
  EXPECT_EQ(refusal(graph, {"s"}), "");
  EXPECT_EQ(refusal(graph, {"h", "y"}), "");  // a chain computes h once
  // All of p is needed at once.
  EXPECT_EQ(refusal(graph, {"p", "q"}), "error: 2.22e+12 operations, 1.77e+10 on their own");
  EXPECT_THAT(refusal(graph, {"s", "n"}), says("sort ... node '%s' (sort)"));
  EXPECT_THAT(refusal(graph, {"x"}), says("parameter ... kernel ... node '%x' (parameter)"));
  EXPECT_THAT(refusal(graph, {}), says("group ... nodes"));
  std::vector<NodeId> backwards = nodes_of(graph, {"h", "y"});
  std::ranges::reverse(backwards);
  EXPECT_FALSE(check_group(graph, backwards).ok());
}

// Each step reads the one before at two places: the code doubles.
TEST(Groups, RefusesCodeThatDoubles) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {64});
  for (int i = 0; i < 12; ++i) {
    Value flipped = b.op(Opcode::reverse, {x}, {{"axes", Ints{0}}});
    x = x + flipped;
  }
  const Graph graph = b.finish({x}).value();
  std::vector<NodeId> nodes;
  for (NodeId node : graph.nodes())
    if (graph.opcode(node) != Opcode::parameter) nodes.push_back(node);
  Status status = check_group(graph, nodes);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().to_string(), says("512 statements"));
  nodes.erase(nodes.begin(), nodes.begin() + 18);
  EXPECT_TRUE(check_group(graph, nodes).ok());
}

// A loop of the search from one end would look at all that lies between.
TEST(Groups, AWayBackIsFoundOverAnyDistance) {
  for (const bool is_closed : {false, true}) {
    Builder b;
    const Value x = b.parameter("x", DType::f32, {64});
    const Value first = b.op(Opcode::tanh, {x});
    Value far = is_closed ? first : x;
    for (int i = 0; i < 1000; ++i) far = b.op(Opcode::exp, {far});
    const Graph graph = b.finish({first + far}).value();
    const std::vector<NodeId> ends = {
        graph.producer(graph.operands(graph.producer(graph.outputs()[0]))[0]),
        graph.producer(graph.outputs()[0])};
    const Status status = check_group(graph, ends);
    EXPECT_EQ(status.ok(), !is_closed);
    if (is_closed) {
      EXPECT_THAT(status, says("(add) ... node")) << status.error().to_string();
    }
  }
}

TEST(Groups, ReadsManyValuesInTheOrderOfFirstUse) {
  constexpr int kCount = 100;
  Builder b;
  std::vector<Value> inputs;
  for (int i = 0; i < kCount; ++i)
    inputs.push_back(b.parameter(fmt::format("x{}", i), DType::f32, {64}));
  Value sum = inputs[0];
  for (int round = 0; round < 2; ++round)
    for (int i = kCount; i-- > 0;) sum = sum + inputs[static_cast<size_t>(i)];
  const Graph graph = b.finish({sum}).value();
  const GroupPorts ports = ports_of(graph, Users(graph), computing_nodes(graph));
  ASSERT_EQ(ports.inputs.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(graph.name(ports.inputs[0]), "x0");  // the first sum reads it first
  for (size_t i = 1; i < kCount; ++i)
    EXPECT_EQ(graph.name(ports.inputs[i]), fmt::format("x{}", kCount - i));
}

TEST(Groups, SpaceHasTheResultsDimsAndTheAnchorsReduction) {
  const Graph graph = graph_of(R"(
graph @g(%x: f32[2, 8, 16], %w: f32[16, 24], %b: f32[24]) -> f32[2, 8, 24] {
  %h = dot %x, %w {lhs_contract = [2], rhs_contract = [0]}
  %bb = broadcast %b {dims = [2, 8, 24], map = [2]}
  %y = add %h, %bb
  return %y
}
)");
  const KernelSpace space = space_of(body_of(graph, nodes_of(graph, {"h", "bb", "y"}), {}));
  EXPECT_EQ(space.parallel, 3);
  ASSERT_EQ(space.dims.size(), 4u);
  EXPECT_TRUE(space.has_anchor());
  EXPECT_EQ(space.dims[3].extent, Dim(16));
  const Graph softmax = graph_of(kSoftmax);
  const KernelSpace two =
      space_of(body_of(softmax, nodes_of(softmax, {"m", "mb", "d", "e", "s", "sb", "y"}), {}));
  EXPECT_EQ(two.dims.size(), 2u);
  EXPECT_FALSE(two.has_anchor());
}

}  // namespace
}  // namespace hone::HONE_FILE
