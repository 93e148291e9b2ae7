#include <gtest/gtest.h>

#include <algorithm>

#include "ir/functional.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

bool only_primitives(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    if (is_composite(graph.opcode(n))) return false;
    for (const GraphRef& region : graph.regions(n))
      if (!only_primitives(*region)) return false;
  }
  return true;
}

TEST(ExpandComposites, LeavesOnlyPrimitivesAndKeepsNames) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {Symbol::get("N", 1, 8), 4});
  Value y = softmax(gelu(x)).named("y");
  Graph g = expand_composites(b.finish({y}).value()).value();
  EXPECT_TRUE(only_primitives(g));
  EXPECT_TRUE(verify(g).ok());
  EXPECT_EQ(g.name(g.outputs()[0]), "y");
  EXPECT_EQ(g.type(g.outputs()[0]), g.type(g.inputs()[0]));
}

TEST(ExpandComposites, ReachesRegions) {
  Builder b;
  Value p = b.parameter("p", DType::boolean, {});
  Value x = b.parameter("x", DType::f32, {4});
  Value args[] = {x};
  auto body = [](Builder&, std::span<const Value> v) { return std::vector{silu(v[0])}; };
  Graph g = expand_composites(b.finish({if_else(p, args, body, body)[0]}).value()).value();
  EXPECT_TRUE(only_primitives(g));
}

TEST(ExpandComposites, ReplacesEveryResult) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {3, 2, 4});
  Value w = b.parameter("w", DType::f32, {1, 20, 4});
  Value r = b.parameter("r", DType::f32, {1, 20, 5});
  std::vector<Value> results = b.ops(Opcode::lstm, std::vector{x, w, r});
  Graph g = b.finish({results[0], results[1], results[2]}).value();
  Graph expanded = expand_composites(g).value();
  EXPECT_TRUE(only_primitives(expanded));
  EXPECT_EQ(expanded.output_types(), g.output_types());
}

}  // namespace
}  // namespace hone::HONE_FILE
