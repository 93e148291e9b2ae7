#include <gtest/gtest.h>

#include "ir/functional.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

// How many elements each sort of the graph keeps, after the pass.
Ints kept(const Graph& graph) {
  const Graph made = sort_heads(graph).value();
  EXPECT_TRUE(verify(made).ok());
  Ints all;
  for (NodeId n : made.nodes())
    if (made.opcode(n) == Opcode::sort) all.push_back(made.op(n).integer("kept"));
  return all;
}

struct Sorted {
  Builder b;
  std::vector<Value> results;
  Sorted() {
    const Value x = b.parameter("x", DType::f32, Dims{3, 10});
    results = sort(std::vector{x, iota(b, DType::i64, x.dims(), 1)}, 1, true);
  }
};

TEST(SortHeads, KeepWhatTheLongestReaderTakes) {
  Sorted s;
  const Graph graph =
      s.b.finish({slice(s.results[0], 1, 0, 2), slice(s.results[1], 1, 0, 4)}).value();
  EXPECT_EQ(kept(graph), Ints{4});
  // The longer slice is what the sort gives; the shorter one is left.
  const Graph made = sort_heads(graph).value();
  EXPECT_EQ(made.node_count(), graph.node_count() - 1);
}

TEST(SortHeads, KeepAllWhereAReaderTakesAll) {
  Sorted s;
  EXPECT_EQ(kept(s.b.finish({slice(s.results[0], 1, 0, 2), s.results[1]}).value()), Ints{0});
  Sorted read;
  const Value head = slice(read.results[0], 1, 0, 2), all = read.results[1] + 1.0;
  EXPECT_EQ(kept(read.b.finish({head, all}).value()), Ints{0});
}

TEST(SortHeads, KeepAllWhereAReaderTakesNoHead) {
  Sorted tail, lines, stepped;
  EXPECT_EQ(kept(tail.b.finish({slice(tail.results[0], 1, 2, 10)}).value()), Ints{0});
  EXPECT_EQ(kept(lines.b.finish({slice(lines.results[0], 0, 0, 2)}).value()), Ints{0});
  EXPECT_EQ(kept(stepped.b.finish({slice(stepped.results[0], 1, 0, 4, 2)}).value()), Ints{0});
}

TEST(SortHeads, KeepNoMoreThanAnOpenLineIsSureToHave) {
  const auto of = [](int64_t least) {
    Builder b;
    const Value x = b.parameter("x", Type::get(DType::f32, Dims{Symbol::get("n", least, 100)}));
    return kept(b.finish({slice(sort(std::vector{x}, 0, false)[0], 0, 0, 5)}).value());
  };
  EXPECT_EQ(of(6), Ints{5});
  EXPECT_EQ(of(5), Ints{0});  // the line may end there, so nothing is gained
}

}  // namespace
}  // namespace hone::HONE_FILE
