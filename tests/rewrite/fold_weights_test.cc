#include <gtest/gtest.h>

#include "ir/text.h"
#include "rewrite/passes.h"
#include "rewrite/weights.h"

namespace hone::HONE_FILE {
namespace {

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }

size_t count(const Graph& graph, Opcode opcode) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += graph.opcode(n) == opcode;
  return found;
}

TEST(FoldWeights, ComputesThroughBroadcasts) {
  const Graph folded = fold_weights(graph_of(R"(graph @g(%x: f32[2, 3]) {
  %w = constant [1, 2, 3, 4, 5, 6] : f32[2, 3]
  %s = constant [10, 20] : f32[2]
  %b = broadcast %s {dims = [2, 3], map = [0]}
  %v = mul %w, %b
  %y = mul %x, %v
  return %y
})"))
                           .value();
  EXPECT_EQ(print(folded), print(graph_of(R"(graph @g(%x: f32[2, 3]) {
  %v = constant [10, 20, 30, 80, 100, 120] : f32[2, 3]
  %y = mul %x, %v
  return %y
})")));
}

TEST(FoldWeights, LeavesBroadcastsThatTheGraphReads) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[2, 3]) {
  %a = constant [1, 2] : f32[2]
  %b = constant [3, 4] : f32[2]
  %s = add %a, %b
  %m = broadcast %s {dims = [2, 3], map = [0]}
  %y = mul %x, %m
  return %y
})");
  const Graph folded = fold_weights(graph).value();
  EXPECT_EQ(count(folded, Opcode::broadcast), 1u);
  EXPECT_EQ(count(folded, Opcode::add), 0u);
}

TEST(FoldWeights, LeavesWhatWouldBeManyTimesAsLarge) {
  // From 4 bytes to 4 MiB.
  const Graph graph = graph_of(R"(graph @g(%x: f32[1024, 1024]) {
  %a = constant 3 : f32[]
  %b = broadcast %a {dims = [1024, 1024], map = []}
  %e = exp %b
  %y = mul %x, %e
  return %y
})");
  EXPECT_TRUE(computed_weights(graph).empty());
}

TEST(FoldWeights, GoesIntoRegions) {
  const Graph graph = graph_of(R"(graph @g(%p: bool[], %x: f32[2]) {
  %y = if %p, %x then (%a: f32[2]) {
    %c = constant [1, 2] : f32[2]
    %d = mul %c, %c
    %z = mul %a, %d
    return %z
  } else (%a: f32[2]) {
    return %a
  }
  return %y
})");
  const Graph folded = fold_weights(graph).value();
  for (NodeId n : folded.nodes())
    for (const GraphRef& region : folded.regions(n)) EXPECT_LE(count(*region, Opcode::mul), 1u);
}

TEST(ComputedWeights, SayWhatTheyAreMadeOf) {
  const Graph graph = graph_of(R"(graph @g(%x: f32[2]) {
  %a = constant [1, 2] : f32[2]
  %b = exp %a
  %c = mul %a, %b
  %y = add %x, %c
  return %y
})");
  const std::vector<ComputedWeight> weights = computed_weights(graph);
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(graph.label(weights[0].value), "%c");
  EXPECT_EQ(weights[0].nodes.size(), 2u);
  EXPECT_EQ(weights[0].constants.size(), 1u);
}

}  // namespace
}  // namespace hone::HONE_FILE
