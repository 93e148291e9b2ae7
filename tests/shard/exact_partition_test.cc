#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "shard/node_division.h"
#include "shard/partition.h"
#include "shard/shard_plan.h"
#include "shard/shard_subject.h"
#include "tests/base/says_testing.h"
#include "tests/shard/mesh_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::judge_mesh;
using tested::refuses;

Graph graph_of(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

constexpr std::string_view kTwo =
    "graph @two(%x: f32[8, 6], %v: f32[6, 4], %w: f32[4, 6]) -> f32[8, 6] {\n"
    "  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}\n"
    "  %a = tanh %h\n"
    "  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}\n"
    "  return %y\n"
    "}\n";
constexpr std::string_view kPlanOfTwo =
    "mesh m=2\n"
    "shard %x = [-, -]\n"
    "shard %v = [-, m]\n"
    "shard %w = [m, -]\n"
    "shard %h = [-, m]\n"
    "shard %a = [-, m]\n"
    "shard %y = [-, -] partial sum [m]\n"
    "output 0 = [m, -]\n";

Graph planned(std::string_view graph, std::string_view plan) {
  Result<ShardPlan> parsed = parse_shard_plan(plan, "plan");
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  Result<Graph> made = with_shard_plan(graph_of(graph), *parsed);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? *made : Graph();
}

Partition cut(const Graph& graph) {
  Result<Partition> made = partition_exactly(graph, meshes_of(graph)[0]);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? std::move(*made) : Partition();
}

TEST(ExactPartition, ReadsPartialSumsFromAPlan) {
  const Graph graph = planned(kTwo, kPlanOfTwo);
  EXPECT_TRUE(is_all_stated(graph));
  const Partition made = cut(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::reduce_scatter);
  EXPECT_TRUE(made.whole.empty());
}

// A plan that is written of a graph with shardings is read again: the graph divides the sum.
TEST(ExactPartition, MakesSummandsOfWhatTheGraphDivides) {
  constexpr std::string_view kGradient =
      "graph @grad(%a: f32[64, 8] on @m [x, -], %b: f32[64, 6] on @m [x, -]) -> f32[8, 6] "
      "mesh @m = [x = 4] {\n"
      "  %d = dot %a, %b {lhs_contract = [0], rhs_contract = [0]} : f32[8, 6] on @m [x, -]\n"
      "  return %d\n"
      "}\n";
  const Graph graph =
      planned(kGradient, "mesh x=4\nshard %d = [-, -] partial sum [x]\noutput 0 = [x, -]\n");
  const Partition made = cut(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::reduce_scatter);
  const Result<ShardPlan> columns = parse_shard_plan("mesh x=4\nshard %d = [-, x]\n", "plan");
  ASSERT_TRUE(columns.ok());
  EXPECT_THAT(with_shard_plan(graph_of(kGradient), *columns),
              refuses(ErrorCode::bad_input, "the graph says [x, -]"));
}

// A loop over layers, going back: one axis divides the batch of what comes out, and the rows of a
// gradient. No division of the loop as one node has both.
TEST(ExactPartition, DividesALoopAlongTheBatchAndAGradient) {
  const Graph graph = graph_of(
      "graph @back(%a: f32[3, 8, 4] on @m [-, x, -], %b: f32[3, 8, 6] on @m [-, x, -], "
      "%g: f32[4, 6] on @m [x, -]) -> (f32[4, 6], f32[3, 8, 4]) mesh @m = [x = 2] {\n"
      "  %r, %y = scan %g, %a, %b {carried = 1} "
      "body (%c: f32[4, 6], %d: f32[8, 4], %e: f32[8, 6]) {\n"
      "    %p = dot %d, %e {lhs_contract = [0], rhs_contract = [0]}\n"
      "    %s = add %c, %p\n"
      "    %t = tanh %d\n"
      "    return %s, %t\n"
      "  } : f32[4, 6] on @m [x, -], f32[3, 8, 4] on @m [-, x, -]\n"
      "  return %r, %y\n"
      "}\n");
  const Partition stated = tested::partitioned(graph);
  const Partition made = cut(with_layouts(graph, stated));
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_TRUE(made.whole.empty());
  ASSERT_EQ(made.messages.size(), 1u) << print(made.graph);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::reduce_scatter);
  EXPECT_EQ(made.messages[0].bytes, stated.messages[0].bytes);
}

// The operands are divided along the dim that is summed; the plan says that devices compute all.
TEST(ExactPartition, GathersOperandsWhereTheResultSaysNothing) {
  std::string plan(kPlanOfTwo);
  plan.replace(plan.find(" partial sum [m]"), 16, "");
  const Graph graph = planned(kTwo, plan);
  const Partition made = cut(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_EQ(made.messages.size(), 2u);
  for (const ShardMessage& one : made.messages) EXPECT_EQ(one.kind, ReshardKind::all_gather);
}

// 7 rows do not divide: the summand of the last device has padding, which counts for nothing.
TEST(ExactPartition, AddsUpPartsOfUnevenSize) {
  const Graph graph = planned(
      "graph @odd(%x: f32[3, 7], %w: f32[7, 2]) -> f32[3, 2] {\n"
      "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  return %y\n"
      "}\n",
      "mesh m=2\nshard %x = [-, m]\nshard %w = [m, -]\n"
      "shard %y = [-, -] partial sum [m]\noutput 0 = [-, -]\n");
  const Partition made = cut(graph);
  EXPECT_TRUE(made.whole.empty());
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
}

// The bytes that each device receives if two devices divide the rows of an operand, and its one
// result is combined from their parts.
int64_t received_bytes(std::string_view text, std::string_view kind) {
  const Graph graph = planned(text, fmt::format("mesh m=2\nshard %x = [m, -]\n"
                                                "shard %y = [-] partial {} [m]\noutput 0 = [-]\n",
                                                kind));
  const Partition made = cut(graph);
  EXPECT_TRUE(made.whole.empty());
  EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(made.graph);
  EXPECT_EQ(made.messages.size(), 1u) << text;
  if (made.messages.size() != 1) return 0;
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  return made.messages[0].bytes;
}

// Sums of 16 bits are exchanged as f32, so that they are rounded once; max and min as they are.
TEST(ExactPartition, CombinesNumbersOfAllWidths) {
  const std::vector<std::pair<std::string_view, int64_t>> types = {
      {"bf16", 2}, {"f16", 2}, {"f64", 8}, {"i8", 1}, {"i16", 2}, {"u32", 4}, {"u64", 8}};
  for (const auto& [type, width] : types)
    for (const std::string_view kind : {"sum", "max", "min"}) {
      const bool is_wider = kind == "sum" && type.ends_with("f16");
      EXPECT_EQ(received_bytes(fmt::format("graph @g(%x: {0}[6, 4]) -> {0}[4] {{\n"
                                           "  %y = reduce %x {{kind = {1}, axes = [0]}}\n"
                                           "  return %y\n"
                                           "}}\n",
                                           type, kind),
                               kind),
                4 * (is_wider ? 4 : width))
          << type << " " << kind;
    }
}

// Halves of 256 and 1 in bf16: rounded on each device, and then once more, 514 would be 512.
TEST(ExactPartition, RoundsSumsOf16BitsOnce) {
  const std::vector<std::string_view> sums = {
      "reduce %x {kind = sum, axes = [0]}",
      "dot %x, %ones {lhs_contract = [0], rhs_contract = [0]}"};
  for (const std::string_view sum : sums) {
    const Graph graph =
        planned(fmt::format("graph @g(%x: bf16[4, 1], %ones: bf16[4]) -> bf16[1] {{\n"
                            "  %y = {}\n"
                            "  return %y\n"
                            "}}\n",
                            sum),
                "mesh m=2\nshard %x = [m, -]\nshard %ones = [m]\n"
                "shard %y = [-] partial sum [m]\noutput 0 = [-]\n");
    const Partition made = cut(graph);
    const std::vector<Tensor> inputs = {
        Tensor::from_reals(graph.input_types()[0], std::vector<double>{256, 1, 256, 1}),
        Tensor::from_reals(graph.input_types()[1], std::vector<double>{1, 1, 1, 1})};
    EXPECT_EQ(judge_mesh(graph, made, inputs), "") << print(made.graph);
    ASSERT_EQ(made.messages.size(), 1u);
    EXPECT_EQ(made.messages[0].bytes, 4);
  }
}

// An element below a byte counts as a byte, where parts have padding and where they have none.
TEST(ExactPartition, CountsWholeBytesOfNarrowElements) {
  for (const int64_t size : {8, 7}) {
    const Partition made =
        cut(planned(fmt::format("graph @g(%x: i4[{0}]) -> i4[{0}] {{\n  return %x\n}}\n", size),
                    "mesh m=2\nshard %x = [m]\noutput 0 = [-]\n"));
    ASSERT_EQ(made.messages.size(), 1u);
    EXPECT_EQ(made.messages[0].bytes, 4) << size;
  }
}

TEST(ExactPartition, SaysWhatAnOpCannotDo) {
  const Graph graph =
      planned("graph @g(%x: f32[8, 6]) -> f32[8, 6] {\n  %h = sort %x {axis = 0}\n  return %h\n}\n",
              "mesh m=2\nshard %x = [m, -]\nshard %h = [m, -]\noutput 0 = [m, -]\n");
  const Partition made = cut(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_EQ(made.whole.size(), 1u);
  EXPECT_THAT(made.whole[0].reason, testing::HasSubstr("all of a dim"));
}

TEST(ExactPartition, SendsAValueOnceToReadersThatNeedTheSame) {
  const Graph graph = planned(
      "graph @g(%x: f32[8, 6]) -> (f32[8, 6], f32[8, 6]) {\n"
      "  %a = neg %x\n  %b = exp %x\n  return %a, %b\n}\n",
      "mesh m=2\nshard %x = [m, -]\nshard %a = [-, m]\nshard %b = [-, m]\n"
      "output 0 = [-, m]\noutput 1 = [-, m]\n");
  const Partition made = cut(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_EQ(made.messages.size(), 1u);
}

// ---- Random divisions ---------------------------------------------------------------------------

struct Tally {
  int right = 0;
  int with_messages = 0;
  int with_regions = 0;
};

Tally judge_divisions(uint64_t first, uint64_t count) {
  Tally total;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph given = tested::random_graph_or_derivative({.seed = seed,
                                                            .min_steps = 3,
                                                            .max_steps = 10,
                                                            .max_elements = 4096,
                                                            .max_dim = 8,
                                                            .continuous = true});
    if (!given.is_static()) continue;
    Rng rng(seed);
    const MeshRef mesh = tested::random_mesh(rng);
    const Result<ShardSubject> subject = shard_subject(given, INT64_MAX);
    if (!subject.ok()) {
      ADD_FAILURE() << seed << ": " << subject.error().to_string();
      continue;
    }
    if (!check_can_partition(subject->graph, *mesh).ok()) continue;
    const Graph graph = tested::randomly_divided(subject->graph, mesh, rng);
    const Result<Partition> made = partition_exactly(graph, mesh);
    if (!made.ok()) {
      ADD_FAILURE() << seed << ": " << made.error().to_string() << print(graph);
      continue;
    }
    EXPECT_EQ(judge_mesh(graph, *made, seed), "") << "seed " << seed << "\n"
                                                  << print(graph) << print(made->graph);
    bool has_regions = false;
    for (const NodeId n : graph.nodes()) has_regions = has_regions || !graph.regions(n).empty();
    // Within a region, what divides an array may not divide what makes it.
    if (!has_regions && !made->whole.empty())
      ADD_FAILURE() << "seed " << seed << ": " << made->whole[0].node << " "
                    << made->whole[0].reason << print(graph);
    ++total.right;
    if (!made->messages.empty()) ++total.with_messages;
    if (has_regions) ++total.with_regions;
  }
  return total;
}

TEST(ExactPartition, OfRandomDivisionsComputesTheSame) {
  const Tally total = judge_divisions(0, 300);
  EXPECT_GT(total.right, 150);
  EXPECT_GT(total.with_messages, 100);
  EXPECT_GT(total.with_regions, 5);
}

// Training steps: the loss and its gradients, through a product, a convolution and a loop.
TEST(ExactPartition, OfDerivativesComputesTheSame) {
  int with_messages = 0;
  for (uint64_t number = 0; number < tested::kDerivatives; ++number) {
    const Graph subject = shard_subject(tested::derivative(number), INT64_MAX).value().graph;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Rng rng(seed);
      const MeshRef mesh = tested::random_mesh(rng);
      const Graph graph = tested::randomly_divided(subject, mesh, rng);
      const Partition made = partition_exactly(graph, mesh).value();
      EXPECT_EQ(judge_mesh(graph, made, seed), "") << "seed " << seed << print(graph);
      with_messages += made.messages.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(with_messages, 60);
}

TEST(ExactPartition, DISABLED_SweepOfRandomDivisions) { judge_divisions(10000, 5000); }

// ---- Plans --------------------------------------------------------------------------------------

TEST(ShardPlan, ComesBackAsItWasPrinted) {
  const Graph graph = planned(kTwo, kPlanOfTwo);
  EXPECT_EQ(print_shard_plan(graph, *meshes_of(graph)[0]), kPlanOfTwo);
}

TEST(ShardPlan, LeavesOpenWhatItDoesNotSay) {
  const Graph graph = planned(kTwo, "# two devices\nmesh m=2\n\nshard %v = [-, m] # columns\n");
  EXPECT_FALSE(is_all_stated(graph));
  EXPECT_EQ(graph.shardings()->values.size(), 1u);
}

constexpr std::string_view kSaid =
    "graph @said(%x: f32[8, 6] on @m [x open, -], %w: f32[6, 4]) -> f32[8, 4] "
    "mesh @m = [x = 2, y = 2] {\n"
    "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4] on @m [x, -]\n"
    "  return %y on @m [x, -]\n"
    "}\n";

TEST(ShardPlan, StandsBesideWhatTheGraphSays) {
  const Graph graph = planned(kSaid, "mesh x=2,y=2\nshard %w = [-, y]\n");
  EXPECT_EQ(print_shard_plan(graph, *meshes_of(graph)[0]),
            "mesh x=2,y=2\nshard %x = [x open, -]\nshard %w = [-, y]\nshard %y = [x, -]\n"
            "output 0 = [x, -]\n");
  // It may say the same once more, and close what the graph leaves open.
  const Graph closed = planned(kSaid,
                               "mesh x=2,y=2\nshard %x = [x y, -]\nshard %y = [x, -]\n"
                               "output 0 = [x, -]\n");
  EXPECT_EQ(print_shard_plan(closed, *meshes_of(closed)[0]),
            "mesh x=2,y=2\nshard %x = [x y, -]\nshard %y = [x, -]\noutput 0 = [x, -]\n");
}

// A program may ask for another division later: the plan has the one where the value is made.
TEST(ShardPlan, SaysHowAValueIsMade) {
  const Graph graph = graph_of(
      "graph @later(%x: f32[8, 6]) -> f32[8, 6] mesh @m = [x = 2] {\n"
      "  %y = tanh %x : f32[8, 6] on @m [x, -] on @m [-, x]\n"
      "  return %y\n"
      "}\n");
  ASSERT_EQ(graph.shardings()->values.size(), 2u);
  const std::string text = print_shard_plan(graph, *meshes_of(graph)[0]);
  EXPECT_EQ(text, "mesh x=2\nshard %y = [x, -]\n");
  const Graph again = with_shard_plan(graph, parse_shard_plan(text, "p").value()).value();
  EXPECT_EQ(*again.shardings(), *graph.shardings());
}

TEST(ShardPlan, RefusesOtherThanTheGraphSays) {
  const auto refused = [](std::string_view text) -> Status {
    HONE_TRY(with_shard_plan(graph_of(kSaid), HONE_TRY(parse_shard_plan(text, "p"))));
    return {};
  };
  EXPECT_THAT(refused("mesh x=2,y=2\nshard %y = [-, -]"),
              refuses(ErrorCode::bad_input, "p:2 ... %y as [-, -] ... [x, -]"));
  EXPECT_THAT(refused("mesh x=2,y=2\nshard %x = [y, -]"),
              refuses(ErrorCode::bad_input, "p:2 ... %x as [y, -] ... [x open, -]"));
  EXPECT_THAT(refused("mesh x=2,y=2\nshard %y = [x, -] partial sum [y]"),
              refuses(ErrorCode::bad_input, "p:2 ... %y"));
  EXPECT_THAT(refused("mesh x=2,y=2\noutput 0 = [y, -]"),
              refuses(ErrorCode::bad_input, "p:2 ... output 0 as [y, -]"));
  EXPECT_THAT(refused("mesh x=4"), refuses(ErrorCode::bad_input, "x=4 ... x=2,y=2"));
}

TEST(ShardPlan, RefusesWhatDoesNotFit) {
  const auto refused = [](std::string_view text) -> Status {
    HONE_TRY(with_shard_plan(graph_of(kTwo), HONE_TRY(parse_shard_plan(text, "p"))));
    return {};
  };
  EXPECT_THAT(refused("shard %x = [m, -]"), refuses(ErrorCode::bad_input, "p:1 ... mesh"));
  EXPECT_THAT(refused(""), refuses(ErrorCode::bad_input, "no mesh"));
  EXPECT_THAT(refused("mesh m"), refuses(ErrorCode::bad_input, "p:1 ... 'm' ... size"));
  EXPECT_THAT(refused("mesh m=0"), refuses(ErrorCode::bad_input, "p:1"));
  EXPECT_THAT(refused("mesh m=2\nmesh m=2"), refuses(ErrorCode::bad_input, "p:2 ... two meshes"));
  EXPECT_THAT(refused("mesh m=2\nshard %z = [m, -]"),
              refuses(ErrorCode::bad_input, "p:2 ... no value 'z'"));
  EXPECT_THAT(refused("mesh m=2\nshard %x = [q, -]"), refuses(ErrorCode::bad_input, "'q'"));
  EXPECT_THAT(refused("mesh m=2\nshard %x = [m]"), refuses(ErrorCode::bad_input, "p:2 ... dims"));
  EXPECT_THAT(refused("mesh m=2\nshard %x = [m, -]\nshard %x = [m, -]"),
              refuses(ErrorCode::bad_input, "p:3 ... twice"));
  EXPECT_THAT(refused("mesh m=2\noutput 0 = [m, -]\noutput 0 = [m, -]"),
              refuses(ErrorCode::bad_input, "p:3 ... twice"));
  EXPECT_THAT(refused("mesh m=2\noutput 1 = [m, -]"), refuses(ErrorCode::bad_input, "output 1"));
  EXPECT_THAT(refused("mesh m=2\noutput 0 = [m, -] partial sum [m]"),
              refuses(ErrorCode::bad_input, "p:2"));
  EXPECT_THAT(refused("mesh m=2\nlayout %x = [0]"), refuses(ErrorCode::bad_input, "'layout'"));
  EXPECT_THAT(refused("mesh m=2\nshard x = [m, -]"),
              refuses(ErrorCode::bad_input, "p:2 ... 'x' is no value"));
}

// Names that mean something in a text stand in quotes.
TEST(ShardPlan, QuotesNamesOfAxes) {
  const std::string text =
      "mesh \"data-par\"=2,\"open\"=3,\"a,b=\\\"#\"=1,x=4\nshard %x = [\"data-par\" \"open\", -]\n";
  const Graph graph = planned(kTwo, text);
  ASSERT_EQ(meshes_of(graph).size(), 1u);
  EXPECT_EQ(meshes_of(graph)[0]->axes,
            (std::vector<MeshAxis>{{"data-par", 2}, {"open", 3}, {"a,b=\"#", 1}, {"x", 4}}));
  EXPECT_EQ(print_shard_plan(graph, *meshes_of(graph)[0]), text);
  EXPECT_EQ(mesh_text(**parse_mesh("\"x\" = 2 , y=3")), "x=2,y=3");
  for (const std::string_view bad : {"data-par=2", "\"a\"b=2", "\"a=2", "open=2", "2x=2", "x=2#"})
    EXPECT_FALSE(parse_mesh(bad).ok()) << bad;
}

// Propagation finds a plan, by which the same is exchanged.
TEST(ShardPlan, SaysWhatAPartitionFound) {
  const Graph some = planned(kTwo, "mesh m=2\nshard %v = [-, m]\nshard %y = [-, -]\n");
  const Partition found = partition_graph(some).value();
  const Graph all = with_layouts(some, found);
  EXPECT_EQ(print_shard_plan(all, *found.mesh),
            "mesh m=2\nshard %x = [-, -]\nshard %v = [-, m]\nshard %w = [m, -]\n"
            "shard %h = [-, m]\nshard %a = [-, m]\nshard %y = [-, -] partial sum [m]\n"
            "output 0 = [-, -]\n");
  const Partition again = cut(all);
  ASSERT_EQ(again.messages.size(), found.messages.size());
  EXPECT_EQ(again.messages[0].bytes, found.messages[0].bytes);
  EXPECT_EQ(judge_mesh(all, again, 1), "");
}

TEST(ShardPlan, NamesTheMeshThatFits) {
  const ShardPlan plan = *parse_shard_plan("mesh x=2,y=4\n", "p");
  EXPECT_TRUE(check_mesh(plan, **parse_mesh("x=2,y=4")).ok());
  EXPECT_THAT(check_mesh(plan, **parse_mesh("x=2")),
              refuses(ErrorCode::bad_input, "x=2,y=4 ... x=2"));
}

}  // namespace
}  // namespace hone::HONE_FILE
