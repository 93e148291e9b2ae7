#include "shard/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "ir/text.h"
#include "shard/value_layout.h"
#include "tests/base/says_testing.h"
#include "tests/shard/mesh_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::judge_mesh;
using tested::parsed;
using tested::partitioned;
using tested::refuses;

TEST(Partition, AddsUpWhatDevicesHaveOfAProduct) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8, 6] on @m [x, y], %w: f32[6, 4] on @m [y, -]) -> f32[8, 4] "
      "mesh @m = [x = 2, y = 2] {\n"
      "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4] on @m [x, -]\n"
      "  return %h\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_EQ(made.graph.input_types()[0].to_string(), "f32[4, 3]");
  EXPECT_EQ(made.graph.output_types()[0].to_string(), "f32[4, 4]");
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  EXPECT_EQ(made.messages[0].value, "%h");
  EXPECT_EQ(made.messages[0].bytes, 4 * 4 * 4);  // half of it twice
  EXPECT_TRUE(made.whole.empty());
}

// The gradient of a weight: a product over a batch whose rows are divided, and so is its result.
Graph gradient(std::string_view type, int64_t batch, int64_t rows, int64_t columns) {
  return parsed(
      fmt::format("graph @g(%a: {0}[{1}, {2}] on @m [x, -], %b: {0}[{1}, {3}] on @m [x, -]) -> "
                  "{0}[{2}, {3}] mesh @m = [x = 4, y = 2] {{\n"
                  "  %d = dot %a, %b {{lhs_contract = [0], rhs_contract = [0]}} : {0}[{2}, {3}] "
                  "on @m [x, -]\n"
                  "  return %d\n"
                  "}}\n",
                  type, batch, rows, columns));
}

std::vector<std::string> kinds_of(const Partition& made) {
  std::vector<std::string> kinds;
  for (const ShardMessage& one : made.messages)
    kinds.push_back(fmt::format("{} {}", name(one.kind), one.value));
  return kinds;
}

// Each device has a summand, and the sum is divided at once: nobody gathers the batch. Sums of
// bf16 move as f32. Seven rows have padding.
TEST(Partition, DividesTheGradientOfAWeightByOneReduceScatter) {
  for (const std::string_view type : {"f32", "bf16"})
    for (const int64_t rows : {8, 7}) {
      const Graph graph = gradient(type, 64, rows, 6);
      const Partition made = partitioned(graph);
      EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(made.graph);
      EXPECT_THAT(kinds_of(made), testing::ElementsAre("reduce_scatter %d"));
      EXPECT_EQ(made.messages[0].bytes, 8 * 6 * 4 / 4 * 3);
      EXPECT_TRUE(made.whole.empty());
    }
}

// The weight is larger than the batch.
TEST(Partition, MovesABatchThatIsSmallerThanTheGradient) {
  const Graph graph = gradient("f32", 4, 16, 16);
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_THAT(kinds_of(made), testing::ElementsAre("all_to_all %a", "all_gather %b"));
}

TEST(Partition, ChoosesByThePriceThatIsGiven) {
  const Graph graph = gradient("f32", 64, 8, 6);
  const ReshardPrice no_sums = [](const ReshardStep& step, int64_t) {
    return step.kind == ReshardKind::reduce_scatter || step.kind == ReshardKind::all_reduce
               ? 1e9
               : static_cast<double>(step.bytes);
  };
  const Result<Partition> made = partition_graph(graph, no_sums);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(judge_mesh(graph, *made, 1), "");
  EXPECT_THAT(kinds_of(*made), testing::ElementsAre("all_to_all %a", "all_gather %b"));
}

// Rows by columns, both divided along one axis: a wide operand stays, the narrow one is gathered,
// and the result moves.
TEST(Partition, LeavesTheLargerOperandWhereItIs) {
  for (const bool is_wide : {false, true}) {
    const Graph graph = parsed(
        fmt::format("graph @g(%a: f32[8, 4] on @m [x, -], %b: f32[4, {0}] on @m [-, x]) -> "
                    "f32[8, {0}] mesh @m = [x = 4] {{\n"
                    "  %y = dot %a, %b {{lhs_contract = [1], rhs_contract = [0]}} : f32[8, {0}] "
                    "on @m [x, -]\n"
                    "  return %y\n"
                    "}}\n",
                    is_wide ? 64 : 4));
    const Partition made = partitioned(graph);
    EXPECT_EQ(judge_mesh(graph, made, 1), "");
    if (is_wide)
      EXPECT_THAT(kinds_of(made), testing::ElementsAre("all_gather %a", "all_to_all %y"));
    else
      EXPECT_THAT(kinds_of(made), testing::ElementsAre("all_gather %b"));
  }
}

TEST(Partition, SaysWhatIsNotDivided) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8] on @m [x]) -> f32[8] mesh @m = [x = 2] {\n"
      "  %h = sort %x {axis = 0} : f32[8] on @m [x]\n"
      "  %y = neg %h : f32[8]\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_GE(made.whole.size(), 1u);
  EXPECT_EQ(made.whole[0].node, "node '%h' (sort)");
  EXPECT_TRUE(made.made_whole.contains("%h"));
  ASSERT_GE(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_gather);
  EXPECT_EQ(made.messages[0].bytes, 8 * 4 / 2);
}

// A sort along rows of which each device has some: each gets all rows of some columns.
TEST(Partition, DividesAnotherDimWhereOneMustBeWhole) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8, 6] on @m [x, -]) -> f32[8, 6] mesh @m = [x = 2] {\n"
      "  %h = sort %x {axis = 0} : f32[8, 6] on @m [x, -]\n"
      "  return %h\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_TRUE(made.whole.empty());
  ASSERT_EQ(made.messages.size(), 2u);
  for (const ShardMessage& one : made.messages) {
    EXPECT_EQ(one.kind, ReshardKind::all_to_all);
    EXPECT_EQ(one.bytes, 8 * 6 * 4 / 2 / 2);
  }
}

// Running sums of 10 rows on 4 devices, from both ends: devices tell each other their totals.
TEST(Partition, RunsOverThePartsOfDevices) {
  for (const std::string_view kind : {"sum", "product", "max", "min"})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true})
        for (const std::string_view type : {"f32", "i32"}) {
          const Graph graph = parsed(fmt::format(
              "graph @g(%x: {3}[10, 2] on @m [x y, -]) -> {3}[10, 2] mesh @m = [x = 2, y = 2] {{\n"
              "  %y = cumulative %x {{kind = {0}, axis = 0, exclusive = {1}, reverse = {2}}} : "
              "{3}[10, 2] on @m [x y, -]\n"
              "  return %y\n"
              "}}\n",
              kind, exclusive, reverse, type));
          const Partition made = partitioned(graph);
          EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(graph) << print(made.graph);
          EXPECT_TRUE(made.whole.empty());
          ASSERT_EQ(made.messages.size(), 1u);
          EXPECT_EQ(made.messages[0].kind, ReshardKind::all_gather);
          EXPECT_EQ(made.messages[0].bytes, 3 * 2 * 4);
        }
}

// Operands of uneven sizes that are joined along the dim that is divided: no device has all of one.
TEST(Partition, JoinsThePartsOfDevices) {
  const std::vector<std::vector<int64_t>> cases = {{4, 4}, {10, 4, 7}, {31, 4}, {4, 31}, {8, 8, 8}};
  for (const std::vector<int64_t>& sizes : cases) {
    const int64_t last = sizes.size() == 3 ? sizes[2] : 0;
    const Graph graph = parsed(
        fmt::format("graph @g(%a: f32[2, {0}] on @m [-, x y], %b: i32[2, {1}] on @m [-, x y], "
                    "%c: f32[2, {2}] on @m [-, x y]) -> f32[2, {3}] mesh @m = [x = 2, y = 2] {{\n"
                    "  %d = cast %b {{dtype = f32}}\n"
                    "  %y = concat %a, %d{4} {{axis = 1}} : f32[2, {3}] on @m [-, x y]\n"
                    "  return %y\n"
                    "}}\n",
                    sizes[0], sizes[1], last == 0 ? 4 : last, sizes[0] + sizes[1] + last,
                    last == 0 ? "" : ", %c"));
    const Partition made = partitioned(graph);
    EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(made.graph);
    EXPECT_TRUE(made.whole.empty());
    for (const ShardMessage& one : made.messages) EXPECT_EQ(one.kind, ReshardKind::permute);
  }
}

// Elements follow from their places: a device makes its own ones, and no others.
TEST(Partition, MakesElementsInParts) {
  for (const std::string_view type : {"f32", "i8", "u16", "i64", "bf16"})
    for (const int axis : {0, 1}) {
      const Graph graph = parsed(fmt::format(
          "graph @g() -> {0}[7, 300] mesh @m = [x = 2, y = 3] {{\n"
          "  %y = iota {{dtype = {0}, dims = [7, 300], axis = {1}}} : {0}[7, 300] on @m [x, y]\n"
          "  return %y\n"
          "}}\n",
          type, axis));
      const Partition made = partitioned(graph);
      EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(made.graph);
      EXPECT_TRUE(made.whole.empty());
      EXPECT_THAT(print(made.graph), testing::Not(testing::HasSubstr("[7, 300]")));
    }
}

// Bits that do not depend on the mesh. Two elements of one block are of one device.
TEST(Partition, MakesRandomBitsInParts) {
  const auto bits = [](int64_t rows, int64_t columns, std::string_view dims) {
    return parsed(fmt::format(
        "graph @g(%k: u64[], %c: u64[]) -> u32[{0}, {1}] mesh @m = [x = 2] {{\n"
        "  %y = rng_bits %k, %c {{dtype = u32, dims = [{0}, {1}]}} : u32[{0}, {1}] on @m {2}\n"
        "  return %y\n"
        "}}\n",
        rows, columns, dims));
  };
  const Graph rows = bits(7, 5, "[x, -]");
  const Partition divided = partitioned(rows);
  EXPECT_EQ(judge_mesh(rows, divided, 1), "");
  EXPECT_TRUE(divided.whole.empty());
  EXPECT_THAT(print(divided.graph), testing::Not(testing::HasSubstr("[7, 5]")));
  for (const Graph& graph : {bits(6, 5, "[x, -]"), bits(6, 4, "[-, x]")}) {
    const Partition whole = partitioned(graph);
    EXPECT_EQ(judge_mesh(graph, whole, 1), "");
    ASSERT_EQ(whole.whole.size(), 1u);
    EXPECT_THAT(whole.whole[0].reason, testing::AnyOf(testing::HasSubstr("one block"),
                                                      testing::HasSubstr("numbered across")));
  }
}

// An exchange in a loop counts as often as the loop runs.
TEST(Partition, CountsWhatLoopsExchange) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8] on @m [x], %s: f32[5, 8]) -> f32[8] mesh @m = [x = 2] {\n"
      "  %a = scan %x, %s {carried = 1} body (%c: f32[8], %d: f32[8]) {\n"
      "    %e = add %c, %d\n"
      "    %t = reduce %e {kind = sum, axes = [0]}\n"
      "    %u = broadcast %t {dims = [8], map = []}\n"
      "    %f = mul %e, %u\n"
      "    return %f\n"
      "  } : f32[8]\n"
      "  return %a\n"
      "}\n");
  const Partition made = partitioned(graph);
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  EXPECT_EQ(made.messages[0].times, 5);
  EXPECT_EQ(made.messages[0].bytes, 5 * 4);
}

// 6 rows: in four parts of 2 the last device would have none. 3 columns in two parts have padding.
TEST(Partition, NamesAxesThatDoNotDivide) {
  const Graph graph = parsed(
      "graph @g(%x: f32[6, 3] on @m [x y, -]) -> f32[6, 3] mesh @m = [x = 2, y = 2] {\n"
      "  %y = neg %x : f32[6, 3] on @m [-, y]\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  ASSERT_EQ(made.whole.size(), 1u);
  EXPECT_EQ(made.whole[0].node, "%x");
  EXPECT_THAT(made.whole[0].reason, testing::HasSubstr("'y' does not divide"));
  EXPECT_THAT(made.whole[0].reason, testing::HasSubstr("dim 0, 3"));
  EXPECT_EQ(made.graph.output_types()[0].to_string(), "f32[6, 2]");
}

TEST(Partition, SendsNothingAlongAxesOfOneDevice) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8, 6] on @m [x one, -], %w: f32[6, 4] on @m [one, -]) -> f32[8, 4] "
      "mesh @m = [x = 2, one = 1] {\n"
      "  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4]\n"
      "  return %h\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_TRUE(made.messages.empty());
  EXPECT_EQ(made.graph.output_types()[0].to_string(), "f32[4, 4]");
}

TEST(Partition, CopiesNumbersInPartsOnly) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8, 6] on @m [x, y]) -> f32[8, 6] mesh @m = [x = 2, y = 3] {\n"
      "  %y = mul %x, 3\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_THAT(print(made.graph), testing::Not(testing::HasSubstr("dynamic_slice")));
  EXPECT_THAT(print(made.graph), testing::HasSubstr("broadcast"));
}

TEST(Partition, DividesTheBodiesOfLoops) {
  const Graph graph = parsed(
      "graph @g(%x: f32[8] on @m [x], %s: f32[5, 8]) -> (f32[8], f32[5, 8]) mesh @m = [x = 2] {\n"
      "  %a, %b = scan %x, %s {carried = 1} body (%c: f32[8], %d: f32[8]) {\n"
      "    %e = add %c, %d\n"
      "    %t = reduce %e {kind = sum, axes = [0]}\n"
      "    %u = broadcast %t {dims = [8], map = []}\n"
      "    %f = mul %e, %u\n"
      "    return %f, %e\n"
      "  } : f32[8], f32[5, 8]\n"
      "  return %a, %b\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
  EXPECT_EQ(made.graph.output_types()[0].to_string(), "f32[4]");
  EXPECT_EQ(made.graph.output_types()[1].to_string(), "f32[5, 4]");
  EXPECT_THAT(print(made.graph), testing::HasSubstr("all_reduce"));
  EXPECT_TRUE(made.whole.empty());
}

// A reshape moves elements between devices along a dim that one side alone has.
TEST(Partition, GathersWhatAReshapeMoves) {
  const Graph graph = parsed(
      "graph @g(%x: f32[2, 3] on @m [x, -]) -> f32[3, 2] mesh @m = [x = 2, y = 2] {\n"
      "  %y = reshape %x {dims = [3, 2]} : f32[3, 2] on @m [-, y]\n"
      "  return %y\n"
      "}\n");
  EXPECT_EQ(judge_mesh(graph, partitioned(graph), 1), "");
}

// A kernel as long as the image has a window of it at each place, over the border of devices.
TEST(Partition, GathersTheImageOfALongKernel) {
  const Graph graph = parsed(
      "graph @g(%x: f32[1, 1, 8] on @m [-, -, x], %w: f32[1, 1, 8]) -> f32[1, 1, 3] "
      "mesh @m = [x = 2] {\n"
      "  %y = conv %x, %w {pad_low = [1], pad_high = [1]} : f32[1, 1, 3] on @m [-, -, -]\n"
      "  return %y\n"
      "}\n");
  EXPECT_EQ(judge_mesh(graph, partitioned(graph), 1), "");
}

TEST(Partition, RefusesValuesThatAreStatedAsPartial) {
  const Graph value = parsed(
      "graph @g(%x: f32[8, 4] on @m [-, -] partial sum [x]) -> f32[8, 4] mesh @m = [x = 2] {\n"
      "  %y = exp %x : f32[8, 4]\n"
      "  return %y\n"
      "}\n");
  EXPECT_THAT(partition_graph(value), refuses(ErrorCode::unsupported, "'%x' ... partial"));
}

TEST(Partition, RefusesWhatItCannotCut) {
  EXPECT_THAT(partition_graph(parsed("graph @g(%x: f32[8] on @m [x]) -> f32[8] mesh @m = [x = 2] "
                                     "{\n  %y = all_reduce %x {kind = sum, group_size = 2}\n"
                                     "  return %y\n}\n")),
              refuses(ErrorCode::unsupported, "graph 'g'"));
  EXPECT_THAT(partition_graph(parsed("graph @g(%x: f32[8] on @m [x]) -> f32[8] mesh @m = [x = 2] "
                                     "devices [1, 0] {\n  return %x\n}\n")),
              refuses(ErrorCode::unsupported, "'m'"));
  EXPECT_THAT(partition_graph(parsed("graph @g(%x: f32[8] on @m [-]) -> f32[8] "
                                     "mesh @m = [x = 8192] {\n  return %x\n}\n")),
              refuses(ErrorCode::limit, "'m' ... 8192 ... 4096"));
}

struct Judged {
  int right = 0;
  int with_messages = 0;
};

Judged judge_random(uint64_t first, uint64_t count) {
  Judged total;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph plain = tested::random_graph_or_derivative({.seed = seed,
                                                            .min_steps = 3,
                                                            .max_steps = 10,
                                                            .max_elements = 4096,
                                                            .max_dim = 8,
                                                            .continuous = true});
    if (!plain.is_static()) continue;
    Rng rng(seed);
    const MeshRef mesh = tested::random_mesh(rng);
    const Graph graph = tested::randomly_stated(plain, mesh, rng);
    if (graph.shardings() == nullptr) continue;
    if (const Status good = verify(graph); !good.ok()) {
      ADD_FAILURE() << seed << good.error().to_string();
      continue;
    }
    const Result<Partition> made = partition_graph(graph);
    if (!made.ok()) {
      EXPECT_THAT(made, refuses(ErrorCode::unsupported, "talks to devices")) << seed;
      continue;
    }
    const std::string text = judge_mesh(graph, *made, seed);
    EXPECT_EQ(text, "") << "seed " << seed << "\n" << print(graph) << print(made->graph);
    ++total.right;
    if (!made->messages.empty()) ++total.with_messages;
  }
  return total;
}

TEST(Partition, OfRandomGraphsComputesTheSame) {
  const Judged total = judge_random(0, 400);
  EXPECT_GT(total.right, 200);
  EXPECT_GT(total.with_messages, 80);
}

TEST(Partition, DISABLED_SweepOfRandomGraphs) { judge_random(1000, 5000); }

// ---- Ways between layouts -----------------------------------------------------------------------

TEST(Reshard, MovesTwoAxesByTwoExchanges) {
  // Two all-to-alls move x and y from the outer dims to the one in the middle.
  const ShardLayout from = {.dims = {{{1, 1, 2}}, {}, {{0, 1, 4}}}};
  const ShardLayout to = {.dims = {{}, {{0, 1, 4}, {1, 1, 2}}, {}}};
  const std::vector<ReshardStep> steps = reshard_steps(from, to, {16, 16, 16}, 4);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, ReshardKind::all_to_all);
  EXPECT_EQ(steps[0].part, (MeshPart{0, 1, 4}));
  EXPECT_EQ(steps[1].kind, ReshardKind::all_to_all);
  EXPECT_EQ(steps[1].part, (MeshPart{1, 1, 2}));
  EXPECT_EQ(steps[0].bytes, 16 * 16 * 16 * 4 / 8 / 4 * 3);
}

TEST(Reshard, CutsBeforeItMoves) {
  const ShardLayout from = {.dims = {{{0, 1, 2}}, {}}};
  const ShardLayout to = {.dims = {{}, {{1, 1, 2}}}};
  const std::vector<ReshardStep> steps = reshard_steps(from, to, {4, 4}, 4);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, ReshardKind::slice);
  EXPECT_EQ(steps[1].kind, ReshardKind::all_gather);
}

// One permute takes the part to the other axis with the fewest bytes. If all that crosses `x` takes
// long, only the gather along `y` is left.
TEST(Reshard, KeepsOffAxesThatAreDear) {
  const ShardLayout from = {.dims = {{{1, 1, 2}}, {}}};
  const ShardLayout to = {.dims = {{{0, 1, 2}}, {}}};
  const std::vector<ReshardStep> by_bytes = reshard_steps(from, to, {4, 4}, 4);
  ASSERT_EQ(by_bytes.size(), 1u);
  EXPECT_EQ(by_bytes[0].kind, ReshardKind::permute);
  const ReshardPrice price = [](const ReshardStep& step, int64_t) {
    const bool crosses = step.kind == ReshardKind::permute ||
                         (step.kind != ReshardKind::slice && step.part.axis == 0);
    return static_cast<double>(step.bytes) * (crosses ? 1000 : 1);
  };
  const std::vector<ReshardStep> by_price = reshard_steps(from, to, {4, 4}, 4, price);
  ASSERT_EQ(by_price.size(), 2u);
  EXPECT_EQ(by_price[0].kind, ReshardKind::all_gather);
  EXPECT_EQ(by_price[0].part.axis, 1u);
  EXPECT_EQ(by_price[1].kind, ReshardKind::slice);
}

ShardLayout behind_steps(ShardLayout at, const std::vector<ReshardStep>& steps) {
  for (const ReshardStep& step : steps) {
    if (step.kind == ReshardKind::permute) {
      EXPECT_EQ(at.dims, step.have);
      at.dims = step.want;
      continue;
    }
    if (step.kind != ReshardKind::slice) at.dims[step.from].pop_back();
    if (step.kind != ReshardKind::all_gather) at.dims[step.to].push_back(step.part);
  }
  return at;
}

// 12 axes over 4 dims have more layouts than can be compared. One permute is found nevertheless.
TEST(Reshard, GoesThroughTheWholeValueIfWaysAreTooMany) {
  ShardLayout from = {.dims = std::vector<MeshParts>(4)}, to = from;
  for (size_t axis = 0; axis < 12; ++axis) {
    from.dims[axis % 4].push_back({axis, 1, 2});
    to.dims[(axis / 4 + 1) % 4].push_back({axis, 1, 2});
  }
  const std::vector<ReshardStep> steps = reshard_steps(from, to, {4096, 4096, 4096, 4096}, 4);
  EXPECT_EQ(behind_steps(from, steps), to);
  EXPECT_EQ(std::ranges::count(steps, ReshardKind::all_gather, &ReshardStep::kind), 12);
  const ShardLayout turned = {.dims = {from.dims[1], from.dims[2], from.dims[3], from.dims[0]}};
  const std::vector<ReshardStep> permuted = reshard_steps(from, turned, {8, 8, 8, 8}, 4);
  ASSERT_EQ(permuted.size(), 1u);
  EXPECT_EQ(permuted[0].kind, ReshardKind::permute);
}

// Each device has the part of another one: one message, and nothing is whole between.
TEST(Reshard, ExchangesPartsOfEqualSize) {
  const std::pair<std::string_view, std::string_view> ways[] = {
      {"[x, -]", "[y, -]"}, {"[x y, -]", "[y x, -]"}, {"[x, y]", "[y, x]"}, {"[-, x]", "[-, y]"}};
  for (const auto& [from, to] : ways) {
    const Graph graph = parsed(fmt::format(
        "graph @g(%x: f32[31, 16] on @m {}) -> f32[31, 16] mesh @m = [x = 4, y = 4] {{\n"
        "  return %x on @m {}\n"
        "}}\n",
        from, to));
    const Partition made = partitioned(graph);
    EXPECT_EQ(judge_mesh(graph, made, 1), "") << from << " to " << to;
    ASSERT_EQ(made.messages.size(), 1u) << from << " to " << to;
    EXPECT_EQ(made.messages[0].kind, ReshardKind::permute);
  }
}

// The wanted dim gets padding while it is whole, and the other one loses its own when it is.
TEST(Reshard, PadsADimBeforePartsComeToIt) {
  const ShardLayout from = {.dims = {{{0, 1, 8}}, {}}}, to = {.dims = {{}, {{0, 1, 8}}}};
  const std::vector<ReshardStep> steps = reshard_steps(from, to, {1001, 1001}, 4);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].kind, ReshardKind::resize);
  EXPECT_EQ(std::pair(steps[0].to, steps[0].size), std::pair(size_t{1}, int64_t{1008}));
  EXPECT_EQ(steps[1].kind, ReshardKind::all_to_all);
  EXPECT_EQ(steps[1].bytes, 126 * 1008 * 4 / 8 * 7);
  EXPECT_EQ(steps[2].kind, ReshardKind::resize);
  EXPECT_EQ(std::pair(steps[2].to, steps[2].size), std::pair(size_t{0}, int64_t{1001}));
}

// Eight parts of 126 are sixteen of 63: nothing is gathered.
TEST(Reshard, CutsPartsWithPaddingWhereOthersBegin) {
  const ShardLayout from = {.dims = {{{0, 1, 8}}}}, to = {.dims = {{{0, 1, 8}, {1, 1, 2}}}};
  const std::vector<ReshardStep> steps = reshard_steps(from, to, {1001}, 4);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, ReshardKind::slice);
}

// From each layout to each other one, where no axis divides a size.
TEST(Reshard, OfUnevenSizesKeepsEachElement) {
  const auto mesh = std::make_shared<const Mesh>(Mesh{"m", {{"x", 2}, {"y", 3}}});
  const Graph plain = parsed("graph @g(%x: f32[7, 5, 11]) -> f32[7, 5, 11] { return %x }\n");
  const std::vector<ShardLayout> all = layouts_of(plain.type(plain.inputs()[0]), *mesh);
  for (const ShardLayout& from : all)
    for (const ShardLayout& to : all) {
      auto said = std::make_shared<Shardings>();
      said->add(plain.inputs()[0], sharding_of(mesh, from));
      said->set_output(0, sharding_of(mesh, to));
      Graph graph = plain;
      graph.set_shardings(std::move(said));
      const Partition made = partitioned(graph);
      EXPECT_EQ(judge_mesh(graph, made, 1), "") << print(graph);
      int64_t received = 0;
      for (const ShardMessage& one : made.messages) received += one.bytes;
      EXPECT_LE(received, 8 * 6 * 12 * 4) << print(graph);  // all of it, with padding
    }
}

TEST(Reshard, DividesASumAtOnce) {
  const ShardLayout from = {.dims = {{}}, .partial = {{0, 1, 4}}};
  const std::vector<ReshardStep> steps = reshard_steps(from, {.dims = {{{0, 1, 4}}}}, {8}, 4);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, ReshardKind::reduce_scatter);
}

}  // namespace
}  // namespace hone::HONE_FILE
