#include "rewrite/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/rewritten.h"
#include "rules/rewrites.h"
#include "tests/base/says_testing.h"
#include "tests/program/product_testing.h"

// Products that are divided into steps compute what the undivided ones do.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;
using testing::HasSubstr;

Graph graph_of(std::string_view text) { return rewritable(parse_graph(text).value()).value(); }

constexpr std::string_view kGathered =
    "graph @g(%x: f32[5, 4], %w: f32[4, 3]) -> f32[10, 3] {\n"
    "  %all = all_gather %x {axis = 0, group_size = 2}\n"
    "  %y = dot %all, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  return %y\n"
    "}\n";
constexpr std::string_view kScattered =
    "graph @s(%x: f32[10, 4], %w: f32[4, 3]) -> f32[5, 3] {\n"
    "  %all = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %y = reduce_scatter %all {kind = sum, axis = 0, group_size = 2}\n"
    "  return %y\n"
    "}\n";

Result<Graph> steps(std::string_view text, std::string_view overlap) {
  const Graph graph = graph_of(text);
  return overlapped(graph, graph.outputs()[0], overlap_from_name(overlap).value());
}

int64_t count(const Graph& graph, Opcode opcode) {
  int64_t found = 0;
  for (const NodeId n : graph.nodes()) found += graph.opcode(n) == opcode ? 1 : 0;
  return found;
}

TEST(Overlap, AShardMovesWhileThePreviousOneIsMultiplied) {
  const Graph graph = steps(kGathered, "overlap_ring_1").value();
  ASSERT_TRUE(verify(graph).ok());
  EXPECT_EQ(count(graph, Opcode::all_gather), 0);
  EXPECT_EQ(count(graph, Opcode::permute), 1);
  EXPECT_EQ(count(graph, Opcode::dot), 2);
  EXPECT_EQ(count(graph, Opcode::dynamic_update), 2);
  // It begins to move before anything is multiplied.
  const std::string text = print(graph);
  EXPECT_LT(text.find("permute"), text.find("dot"));
}

TEST(Overlap, PiecesNeedNotBeEven) {
  const Graph graph = steps(kGathered, "overlap_both_2").value();
  EXPECT_EQ(count(graph, Opcode::permute), 2);
  EXPECT_EQ(count(graph, Opcode::dot), 4);
  EXPECT_THAT(print(graph), HasSubstr("f32[2, 4]"));
  EXPECT_THAT(print(graph), HasSubstr("f32[3, 4]"));
}

TEST(Overlap, SumsMoveWhileOthersAreComputed) {
  const Graph graph = steps(kScattered, "overlap_ring_2").value();
  EXPECT_EQ(count(graph, Opcode::reduce_scatter), 0);
  EXPECT_EQ(count(graph, Opcode::permute), 2);
  EXPECT_EQ(count(graph, Opcode::dot), 4);
  int64_t sums = 0;
  for (const NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::add)
      sums += is_real(graph.type(graph.result(n)).dtype()) ? 1 : 0;
  EXPECT_EQ(sums, 2);
}

TEST(Overlap, SaysWhyAProductCannotBeDivided) {
  EXPECT_THAT(steps(kGathered, "overlap_ring_6"),
              refuses(ErrorCode::bad_input, "'%y' (dot) ... shard of 5 ... 6 pieces"));
  EXPECT_THAT(steps(kGathered, "overlap_both_1"), says("one piece ... both ways"));
  EXPECT_THAT(steps(kScattered, "overlap_ring_1"), says("'%y' (reduce_scatter) ... one piece"));
  EXPECT_THAT(steps("graph @g(%x: f32[4]) { %y = neg %x return %y }", "overlap_ring_2"),
              says("'%y' (neg) ... no dot"));
  EXPECT_THAT(steps("graph @g(%x: f32[2, 2]) {\n"
                    "  %a = all_gather %x {axis = 0, group_size = 2}\n"
                    "  %y = dot %a, %x {lhs_contract = [1], rhs_contract = [0]}\n"
                    "  return %y, %a\n"
                    "}\n",
                    "overlap_ring_2"),
              says("'%y' (dot) ... others read"));
  EXPECT_THAT(steps("graph @g(%x: f32[4, 2]) {\n"
                    "  %d = dot %x, %x {lhs_contract = [1], rhs_contract = [1]}\n"
                    "  %y = reduce_scatter %d {kind = max, axis = 0, group_size = 2}\n"
                    "  return %y\n"
                    "}\n",
                    "overlap_ring_2"),
              says("'%y' (reduce_scatter) ... does not sum"));
}

TEST(Overlap, NamesAreReadBack) {
  for (const bool is_both : {false, true})
    for (const int64_t pieces : {1, 2, 64}) {
      const Overlap overlap = {is_both, pieces};
      EXPECT_EQ(overlap_from_name(name(overlap)), overlap);
    }
  for (const std::string_view wrong :
       {"overlap", "overlap_ring_", "overlap_ring_0", "overlap_ring_65", "overlap_ring_02",
        "overlap_both_2x", "overlap_rong_2", "fold"})
    EXPECT_EQ(overlap_from_name(wrong), std::nullopt) << wrong;
}

TEST(Overlap, APlanNamesItAmongItsRewrites) {
  const Graph given = parse_graph(kGathered).value();
  const auto by = [&](std::string_view line) {
    return rewritten(given, parse_plan(fmt::format("plan @g {{ {} }}", line)).value(),
                     std::span<const Rule>());
  };
  const Graph graph = by("rewrite 1 = @overlap_ring_2(%y)").value();
  EXPECT_EQ(count(graph, Opcode::dot), 4);
  EXPECT_EQ(graph.name(graph.outputs()[0]), "y");
  EXPECT_THAT(by("rewrite 1 = @overlap_ring_2(%gone)"), says("rewrite 1 ... %gone"));
  EXPECT_THAT(by("rewrite 1 = @overlap_ring_2(%all)"), says("rewrite 1 ... '%all' (all_gather)"));
  EXPECT_THAT(by("rewrite 1 = @overlap_rong_2(%y)"), says("rewrite 1 ... rule 'overlap_rong_2'"));
}

TEST(Overlap, ChoicesAreThoseThatFit) {
  const Graph gathered = graph_of(kGathered), scattered = graph_of(kScattered);
  ASSERT_EQ(overlap_candidates(gathered), std::vector{gathered.outputs()[0]});
  ASSERT_EQ(overlap_candidates(scattered), std::vector{scattered.outputs()[0]});
  const auto choices = [](const Graph& graph) {
    std::string all;
    for (const Overlap& one : overlaps_of(graph, graph.outputs()[0])) all += name(one) + " ";
    return all;
  };
  EXPECT_EQ(choices(gathered),
            "overlap_ring_1 overlap_ring_2 overlap_ring_4 overlap_both_2 overlap_both_4 ");
  EXPECT_EQ(choices(scattered), "overlap_ring_2 overlap_ring_4 overlap_both_2 overlap_both_4 ");
}

void check_random(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed)
    ASSERT_EQ(tested::product_fault(seed, seed % 9 == 0 ? 8 : 4, seed % 2 == 0), "") << seed;
}

TEST(Overlap, RandomProductsInStepsComputeTheSame) { check_random(0, 400); }
TEST(Overlap, DISABLED_SweepRandomProducts) { check_random(10'000, 20'000); }

}  // namespace
}  // namespace hone::HONE_FILE
