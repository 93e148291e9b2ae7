#include <gtest/gtest.h>

#include "rewrite/passes.h"
#include "tests/ir/text_testing.h"

namespace hone::HONE_FILE {
namespace {

size_t count(const Graph& graph, Opcode opcode) {
  size_t found = 0;
  for (NodeId n : graph.nodes()) found += graph.opcode(n) == opcode ? 1 : 0;
  return found;
}

TEST(Effects, InRegionsAreNeitherFoldedNorMerged) {
  Graph graph = parse_ok(
      "graph @g() { %c = constant 1 : i64[]"
      " %a = call %c callee(%x: i64[]) { %d = device_index %s = add %x, %d return %s }"
      " %b = call %c callee(%x: i64[]) { %d = device_index %s = add %x, %d return %s }"
      " return %a, %b }");
  Result<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded.ok());
  EXPECT_EQ(count(*folded, Opcode::call), 2u);
  Result<Graph> merged = merge_common_subexpressions(graph);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(count(*merged, Opcode::call), 2u);
}

TEST(Effects, AnEndlessLoopOverConstantsIsNotFolded) {
  Result<Graph> folded = fold_constants(
      parse_ok("graph @g() { %c = constant 1 : i64[]"
               " %a = while %c condition(%x: i64[]) { %t = constant true : bool[] return %t }"
               " body(%x: i64[]) { return %x } return %a }"));
  ASSERT_TRUE(folded.ok());
  EXPECT_EQ(count(*folded, Opcode::while_), 1u);
}

}  // namespace
}  // namespace hone::HONE_FILE
