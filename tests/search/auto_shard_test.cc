#include "search/auto_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cost/analytic.h"
#include "ir/text.h"
#include "learn/training_step.h"
#include "search/shard_problem.h"
#include "shard/node_division.h"
#include "shard/shard_plan.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/shard/mesh_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::judge_mesh;
using tested::refuses;

Target sample() { return parse_target(kSampleTarget, "t").value(); }

// A ring of devices with fast links.
System ring(int64_t devices) {
  System system = preset_system(fmt::format("ring:{}", devices), sample()).value();
  system.links[0].bytes_per_second = 1e12;
  system.links[0].latency = 1e-8;
  return system;
}

MeshRef mesh_of(std::string_view text) { return parse_mesh(text).value(); }

Result<AutoSharding> sharded(const Graph& graph, std::string_view mesh, const System& system,
                             AutoShardOptions options = {}) {
  options.seconds = 0;
  options.steps = 2000;
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  return auto_shard(graph, mesh_of(mesh), system, {{cost}}, options);
}

Graph subject(std::string_view text) {
  Result<ShardSubject> made = shard_subject(parse_graph(text).value());
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made->graph;
}

// Two products: the batch can be divided, or columns and rows of the weights.
std::string layers(int64_t rows) {
  return fmt::format(
      "graph @layers(%x: f32[{0}, 256], %v: f32[256, 1024], %w: f32[1024, 256]) {{\n"
      "  %h = dot %x, %v {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  %a = tanh %h\n"
      "  %y = dot %a, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  return %y\n"
      "}}\n",
      rows);
}

TEST(AutoShard, DividesWhatTakesLong) {
  const Graph graph = subject(layers(512));
  const Result<AutoSharding> made = sharded(graph, "x=4", ring(4));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  ASSERT_TRUE(made->whole.has_value());
  EXPECT_LT(made->best.seconds, 0.5 * *made->whole);
  EXPECT_TRUE(made->is_optimal);
  EXPECT_LE(made->bound.value(), made->price);
  EXPECT_TRUE(is_all_stated(made->best.graph));
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
}

// Links so slow that nothing but the batch can be divided, and that only as inputs come divided.
TEST(AutoShard, MovesNothingOverSlowLinks) {
  System system = ring(4);
  system.links[0].bytes_per_second = 1e3;
  const Result<AutoSharding> made = sharded(subject(layers(512)), "x=4", system);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE(made->best.partition.messages.empty());
  EXPECT_LT(made->best.seconds, *made->whole);
}

TEST(AutoShard, KeepsWhatTheGraphSays) {
  const ShardPlan plan =
      parse_shard_plan("mesh x=2\nshard %v = [-, x]\nshard %x = [-, -]\n", "p").value();
  const Graph graph = with_shard_plan(subject(layers(512)), plan).value();
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(ring(2).targets[0]);
  const Result<AutoSharding> made =
      auto_shard(graph, plan.mesh, ring(2), {{cost}}, {.seconds = 0, .steps = 1000});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const std::string text = print_shard_plan(made->best.graph, *plan.mesh);
  EXPECT_THAT(text, testing::HasSubstr("shard %v = [-, x]\n"));
  EXPECT_THAT(text, testing::HasSubstr("shard %x = [-, -]\n"));
}

// Rows may be divided further, but not along the axis that must divide nothing of the value.
TEST(AutoShard, GivesOpenDimsNoAxisOfCopies) {
  const std::string open =
      "graph @g(%x: f32[512, 256] on @m [x open, open]{}, %w: f32[256, 256]) -> f32[512, 256] "
      "mesh @m = [x = 2, y = 2] {{\n"
      "  %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}\n"
      "  return %y\n"
      "}}\n";
  bool uses_y = false;
  for (const std::string_view copies : {"", " replicated [y]"}) {
    const Graph graph = subject(fmt::format(fmt::runtime(open), copies));
    const Result<AutoSharding> made = sharded(graph, "x=2,y=2", ring(4));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    const ShardLayout& rows = made->best.partition.inputs[0];
    const bool is_by_y = std::ranges::any_of(rows.dims, [](const MeshParts& parts) {
      return std::ranges::any_of(parts, [](const MeshPart& part) { return part.axis == 1; });
    });
    uses_y = uses_y || is_by_y;
    if (!copies.empty()) EXPECT_FALSE(is_by_y);
    // The plan can be read again.
    const std::string text = print_shard_plan(made->best.graph, *mesh_of("x=2,y=2"));
    const Result<Graph> again = with_shard_plan(graph, parse_shard_plan(text, "p").value());
    EXPECT_TRUE(again.ok()) << again.error().to_string();
  }
  EXPECT_TRUE(uses_y);  // where nobody forbids it
}

TEST(AutoShard, RefusesWhatCannotBeDividedSo) {
  const Graph graph = subject(
      "graph @g(%x: f32[8, 6]) -> f32[8, 6] {\n  %h = sort %x {axis = 0}\n  return %h\n}\n");
  const ShardPlan plan = parse_shard_plan("mesh x=2\nshard %h = [x, -]\n", "p").value();
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(ring(2).targets[0]);
  EXPECT_THAT(auto_shard(with_shard_plan(graph, plan).value(), plan.mesh, ring(2), {{cost}}),
              refuses(ErrorCode::unsupported, "%h ... [x, -]: it needs all of a dim"));
  const ShardPlan few = parse_shard_plan("mesh x=2\nshard %x = [-, x]\n", "p").value();
  const Graph narrow =
      subject("graph @g(%x: f32[8, 1]) -> f32[8, 1] {\n  %h = tanh %x\n  return %h\n}\n");
  EXPECT_THAT(auto_shard(with_shard_plan(narrow, few).value(), few.mesh, ring(2), {{cost}}),
              refuses(ErrorCode::unsupported, "%x ... dim 1 has 1 for 2 devices"));
  EXPECT_THAT(sharded(graph, "x=4", ring(2)), refuses(ErrorCode::bad_input, "4 devices ... 2"));
  EXPECT_THAT(sharded(graph, "a=2,b=2,c=2,d=2,e=2", ring(32)), refuses(ErrorCode::limit, "5 axes"));
}

// The weights take 2 MiB: four devices have parts of them, if each has less.
TEST(AutoShard, KeepsWithinTheMemoryOfADevice) {
  System system = ring(4);
  system.links[0].bytes_per_second = 1e7;
  const Graph graph = subject(layers(64));
  const Result<AutoSharding> free = sharded(graph, "x=4", system);
  ASSERT_TRUE(free.ok()) << free.error().to_string();
  const int64_t limit = free->best.memory * 3 / 5;
  const Result<AutoSharding> made = sharded(graph, "x=4", system, {.memory = limit});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(made->best.memory, limit);
  EXPECT_GT(made->best.seconds, free->best.seconds);
  EXPECT_FALSE(made->whole.has_value());
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
  EXPECT_THAT(sharded(graph, "x=4", system, {.memory = 1 << 16}),
              refuses(ErrorCode::limit, "64.0 KiB ... too much"));
}

// No search for less memory finds less than the error tells.
TEST(AutoShard, TellsTheLeastMemory) {
  System system = ring(4);
  system.links[0].bytes_per_second = 1e7;
  const Graph graph = subject(layers(64));
  const auto within = [&](int64_t memory) {
    return sharded(graph, "x=4", system, {.memory = memory});
  };
  const int64_t free = within(0)->best.memory;
  int64_t least = free;
  for (const int64_t tenths : {8, 6, 5, 4, 3})
    if (const Result<AutoSharding> made = within(free * tenths / 10); made.ok())
      least = std::min(least, made->best.memory);
  ASSERT_LT(least, free);
  const Result<AutoSharding> none = within(1 << 16);
  ASSERT_FALSE(none.ok());
  const std::string text = none.error().to_string();
  const size_t takes = text.find("the best takes ");
  ASSERT_NE(takes, std::string::npos) << text;
  const bool are_kib = text.find("KiB, ", takes) < text.find("MiB, ", takes);
  const double told = std::stod(text.substr(takes + 15));  // in tenths
  const double unit = are_kib ? 1 << 10 : 1 << 20;
  EXPECT_LE(told, static_cast<double>(least) / unit + 0.05) << text;
  EXPECT_THAT(text, testing::HasSubstr("the largest of a device are %"));
}

// All orders of four axes are more ways than are compared. None of the axes stays idle.
TEST(AutoShard, UsesAllOfManyAxes) {
  const Graph graph = subject(
      "graph @r4(%x: f32[16, 16, 16, 16]) -> f32[16, 16, 16, 16] {\n"
      "  %t = tanh %x\n  %e = exp %t\n  return %e\n}\n");
  const Result<AutoSharding> one = sharded(graph, "a=16", ring(16));
  const Result<AutoSharding> four = sharded(graph, "a=2,b=2,c=2,d=2", ring(16));
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_EQ(four->best.seconds, one->best.seconds);
  EXPECT_EQ(four->best.memory, one->best.memory);
  EXPECT_EQ(four->all_options, 4U * 625);
  EXPECT_LT(four->options, four->all_options);
  EXPECT_FALSE(four->bound.has_value());
  EXPECT_FALSE(four->is_optimal);
  EXPECT_TRUE(one->bound.has_value());
}

// Parts of axes and other orders are options where they are stated, and where they can go on.
TEST(AutoShard, TakesWhatIsStatedByPartsAndInOtherOrders) {
  const Graph graph = subject(layers(512));
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(ring(4).targets[0]);
  for (const std::string_view text :
       {"mesh x=2,y=2\nshard %x = [y x, -]\n", "mesh x=4\nshard %x = [x:(1)2, -]\n",
        "mesh x=2,y=2\noutput 0 = [y x, -]\n"}) {
    const ShardPlan plan = parse_shard_plan(text, "p").value();
    const Result<AutoSharding> made = auto_shard(with_shard_plan(graph, plan).value(), plan.mesh,
                                                 ring(4), {{cost}}, {.seconds = 0, .steps = 1000});
    ASSERT_TRUE(made.ok()) << text << made.error().to_string();
    EXPECT_TRUE(made->best.partition.messages.empty()) << text;
    EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "") << text;
  }
}

// An image whose rows alone can be divided: devices ask their neighbours for those at the border.
TEST(AutoShard, DividesTheRowsOfAnImage) {
  const Graph graph = subject(
      "graph @image(%x: f32[1, 1, 256, 64], %k: f32[1, 1, 3, 3]) -> f32[1, 1, 256, 64] {\n"
      "  %y = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1]}\n"
      "  return %y\n"
      "}\n");
  const Result<AutoSharding> made = sharded(graph, "x=4", ring(4), {.memory = 60 << 10});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(made->best.memory, 60 << 10);
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
  EXPECT_TRUE(made->best.partition.whole.empty());
  ASSERT_EQ(made->best.partition.messages.size(), 1u);
  EXPECT_EQ(made->best.partition.messages[0].kind, ReshardKind::permute);
  // The plan that it writes is followed to the letter.
  const std::string text = print_shard_plan(made->best.graph, *mesh_of("x=4"));
  const Graph again = with_shard_plan(graph, parse_shard_plan(text, "p").value()).value();
  const Partition part = partition_exactly(again, mesh_of("x=4")).value();
  ASSERT_EQ(part.messages.size(), 1u);
  EXPECT_EQ(part.messages[0].kind, ReshardKind::permute);
}

// The time is over before any node has a price. The batch alone, which needs none, is found still.
TEST(AutoShard, FindsTheBatchWhereTimeIsOver) {
  const Graph graph = subject(layers(4096));
  const System system = ring(4);
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  const Result<AutoSharding> made =
      auto_shard(graph, mesh_of("x=4"), system, {{cost}}, {.seconds = 1e-9});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->judged, 1u);
  EXPECT_GT(made->late, 0u);
  EXPECT_LT(made->best.seconds, 0.5 * made->whole.value());
}

// A permute among 64 devices has a price: nothing is gathered instead.
TEST(AutoShard, SendsRowsOfAnImageAmongManyDevices) {
  const Graph graph = subject(
      "graph @image(%x: f32[1, 1, 4096, 294], %k: f32[1, 1, 3, 3]) -> f32[1, 1, 4096, 294] {\n"
      "  %y = conv %x, %k {pad_low = [1, 1], pad_high = [1, 1]}\n"
      "  return %y\n"
      "}\n");
  const System system = preset_system("local:64", sample()).value();
  const Graph stated =
      with_shard_plan(graph, parse_shard_plan("mesh x=64\nshard %x = [-, -, x, -]\n", "p").value())
          .value();
  const Result<AutoSharding> made = sharded(stated, "x=64", system, {});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LT(made->price, 1);
  const auto is_permute = [](const auto& one) { return one.kind == ReshardKind::permute; };
  EXPECT_TRUE(std::ranges::any_of(made->best.partition.messages, is_permute));
}

// Weights of eight layers in a loop take 2 MiB. Each device has columns of all, and layers exchange
// what they compute.
TEST(AutoShard, DividesTheWeightsOfALoop) {
  const Graph graph = subject(
      "graph @layers(%x: f32[16, 256], %w: f32[8, 256, 256]) -> f32[16, 256] {\n"
      "  %y = scan %x, %w {carried = 1} body (%h: f32[16, 256], %v: f32[256, 256]) {\n"
      "    %d = dot %h, %v {lhs_contract = [1], rhs_contract = [0]}\n"
      "    %t = tanh %d\n"
      "    return %t\n"
      "  } : f32[16, 256]\n"
      "  return %y\n"
      "}\n");
  const Result<AutoSharding> made = sharded(graph, "x=4", ring(4), {.memory = 1500 << 10});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(made->best.memory, 1500 << 10);
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
  bool is_in_loop = false;
  for (const ShardMessage& one : made->best.partition.messages)
    is_in_loop = is_in_loop || one.times == 8;
  EXPECT_TRUE(is_in_loop);
}

TEST(AutoShard, TakesLoopsThatAreStatedAsNoRuleDividesThem) {
  // One axis divides the batch of what comes out, and the rows of a gradient.
  const Graph back = subject(
      "graph @back(%a: f32[3, 8, 4] on @m [-, x, -], %b: f32[3, 8, 6], %g: f32[4, 6]) -> "
      "(f32[4, 6], f32[3, 8, 4]) mesh @m = [x = 2] {\n"
      "  %r, %y = scan %g, %a, %b {carried = 1} "
      "body (%c: f32[4, 6], %d: f32[8, 4], %e: f32[8, 6]) {\n"
      "    %p = dot %d, %e {lhs_contract = [0], rhs_contract = [0]}\n"
      "    %s = add %c, %p\n"
      "    %t = tanh %d\n"
      "    return %s, %t\n"
      "  } : f32[4, 6] on @m [x, -], f32[3, 8, 4] on @m [-, x, -]\n"
      "  return %r, %y\n"
      "}\n");
  // Windows of a state: neighbours exchange rows in each step.
  const Graph halo = subject(
      "graph @halo(%x: f32[1, 1, 64, 29], %w: f32[4, 1, 1, 3, 3]) -> f32[1, 1, 64, 29] "
      "mesh @m = [x = 2] {\n"
      "  %z = scan %x, %w {carried = 1} body (%s: f32[1, 1, 64, 29], %v: f32[1, 1, 3, 3]) {\n"
      "    %y = conv %s, %v {pad_low = [1, 1], pad_high = [1, 1]}\n"
      "    return %y\n"
      "  } : f32[1, 1, 64, 29] on @m [-, -, x, -]\n"
      "  return %z\n"
      "}\n");
  for (const Graph& graph : {back, halo}) {
    const Result<AutoSharding> made = sharded(graph, "x=2", ring(2));
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
    EXPECT_TRUE(made->best.partition.whole.empty());
  }
}

// A table that is larger than a device: rows are looked up where they are.
TEST(AutoShard, DividesTheRowsOfATable) {
  const Graph graph = subject(
      "graph @table(%t: f32[65536, 2], %i: i32[64]) -> f32[64, 2] {\n"
      "  %y = gather %t, %i {offset_dims = [1], collapsed_dims = [0], index_map = [0], "
      "index_vector_dim = 1, sizes = [1, 2]}\n"
      "  return %y\n"
      "}\n");
  const Result<AutoSharding> made = sharded(graph, "x=4", ring(4), {.memory = 200 << 10});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(made->best.memory, 200 << 10);
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
}

// No size is even: devices have padding where they have parts of weights.
TEST(AutoShard, DividesUnevenSizes) {
  const std::string text =
      "graph @odd(%x: f32[5, 255], %v: f32[255, 1021], %w: f32[1021, 255]) -> f32[5, 255] {\n"
      "  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}\n"
      "  %a = tanh %h\n"
      "  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  return %y\n"
      "}\n";
  const Graph graph = subject(text);
  for (const std::string_view mesh : {"x=4", "x=2,y=2"}) {
    const Result<AutoSharding> free = sharded(graph, mesh, ring(4));
    ASSERT_TRUE(free.ok()) << free.error().to_string();
    EXPECT_EQ(judge_mesh(graph, free->best.partition, 1), "");
    const int64_t limit = 1'300'000;  // the weights take 2.1 MB
    const Result<AutoSharding> made = sharded(graph, mesh, ring(4), {.memory = limit});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_LE(made->best.memory, limit);
    EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
    // Parts of weights alone fit, and no axis divides 255 or 1021.
    bool is_padded = false;
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      for (size_t d = 0; d < 2; ++d)
        is_padded = is_padded ||
                    has_padding(made->best.partition.inputs[i].dims[d],
                                graph.type(graph.inputs()[i]).dim(static_cast<int>(d)).value());
    EXPECT_TRUE(is_padded);
  }
}

// The sum over 1021 rows may be divided: a plan that asks for summands is followed.
TEST(AutoShard, TakesSumsOfUnevenParts) {
  const Graph graph = subject(
      "graph @odd(%x: f32[5, 1021], %w: f32[1021, 255]) -> f32[5, 255] {\n"
      "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
      "  return %y\n"
      "}\n");
  const ShardPlan plan =
      parse_shard_plan("mesh x=4\nshard %y = [-, -] partial sum [x]\n", "p").value();
  const Result<AutoSharding> made = sharded(with_shard_plan(graph, plan).value(), "x=4", ring(4));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_TRUE(made->best.partition.whole.empty());
  EXPECT_EQ(made->best.partition.inputs[1].dims[0],
            MeshParts({{.axis = 0, .before = 1, .size = 4}}));
  EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "");
}

// A next state takes the place of the last one, so each device has the same part of both.
TEST(AutoShard, LaysNextStatesAsTheLastOnes) {
  const Graph model = build_zoo_model("mlp", {.size = ZooSize::tiny, .batch = 8}).value();
  const TrainingStep step =
      training_step(model, {.optimizer = find_optimizer("momentum").value()}).value();
  Graph graph = shard_subject(step.graph).value().graph;
  ASSERT_FALSE(graph.donations().empty());
  // Some states are said to be divided; the next ones are not said.
  const MeshRef mesh = mesh_of("x=4");
  auto said = std::make_shared<Shardings>();
  size_t divided = 0;
  for (const Donation& one : graph.donations()) {
    const ValueId input = graph.inputs()[one.input];
    const std::vector<ShardLayout> layouts = layouts_of(graph.type(input), *mesh);
    if (layouts.size() < 2) continue;
    said->add(input, sharding_of(mesh, layouts.back()));
    ++divided;
  }
  ASSERT_GT(divided, 0u);
  graph.set_shardings(std::move(said));
  const Result<AutoSharding> made = sharded(graph, "x=4", ring(4));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  for (const Donation& one : graph.donations()) {
    const ShardLayout& now = made->best.partition.inputs[one.input];
    EXPECT_EQ(now, made->best.partition.outputs[one.output]);
    if (now != undivided(graph.type(graph.inputs()[one.input]))) --divided;
  }
  EXPECT_EQ(divided, 0u);
}

// The cost of the assignment is the sum of the prices of its options, and of what is sent.
TEST(AutoShard, PricesWhatThePartitionSends) {
  const Graph graph = subject(layers(512));
  const System system = ring(4);
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  const MeshRef mesh = mesh_of("x=2,y=2");
  ShardPrices prices(system, {{cost}}, mesh);
  const ShardProblem made = shard_problem(graph, mesh, prices).value();
  ASSERT_TRUE(check(made.problem).ok());
  Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    Assignment assignment;
    for (const AssignNode& node : made.problem.nodes)
      assignment.push_back(static_cast<uint32_t>(rng.below(node.costs.size())));
    const Graph stated = with_assignment(graph, mesh, made, assignment);
    const Partition part = partition_exactly(stated, mesh).value();
    EXPECT_TRUE(part.whole.empty());
    const AssignValue value = evaluate(made.problem, assignment).value();
    Int128 kernels = 0;
    for (size_t n = 0; n < assignment.size(); ++n)
      kernels += made.problem.nodes[n].costs[assignment[n]];
    EXPECT_EQ(value.cost > kernels + 1000000, !part.messages.empty()) << i;
  }
}

// In a loop devices send what its price is of, as they do outside.
TEST(AutoShard, PricesWhatALoopSends) {
  const Graph graph = subject(R"(
graph @loop(%x: f32[64, 64], %w: f32[4, 64, 64]) -> f32[64, 64] {
  %y = scan %x, %w {carried = 1} body (%a: f32[64, 64], %b: f32[64, 64]) {
    %d = dot %a, %b {lhs_contract = [1], rhs_contract = [0]}
    %r = sort %d {axis = 0}
    %t = tanh %r
    return %t
  } : f32[64, 64]
  return %y
})");
  const System system = preset_system("tree:2x2", sample()).value();
  const MeshRef mesh = mesh_of("hosts=2,in=2");
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  ShardPrices prices(system, {{cost}}, mesh);
  const ShardProblem made = shard_problem(graph, mesh, prices).value();
  const uint32_t loop = graph.producer(graph.outputs()[0]).index;
  int sent = 0;
  for (uint32_t option = 0; option < made.options[loop].size(); ++option) {
    Assignment assignment(made.problem.nodes.size(), 0);
    assignment[loop] = option;
    const Partition part =
        partition_exactly(with_assignment(graph, mesh, made, assignment), mesh, prices.steps())
            .value();
    std::vector<std::pair<ReshardKind, int64_t>> priced, inside;
    for (const MeshExchange& one : made.options[loop][option].exchanges)
      priced.emplace_back(one.kind, one.bytes);
    for (const MeshExchange& one : part.messages)
      if (one.times > 1) inside.emplace_back(one.kind, one.bytes);
    EXPECT_EQ(inside, priced) << option;
    sent += static_cast<int>(inside.size());
  }
  EXPECT_GT(sent, 0);
}

// Two hosts of two devices. The way of least bytes lets parts change places, and half of them cross
// hosts. Within a host each device gets all parts in less time, and takes its own. The program
// sends what was priced.
TEST(AutoShard, AvoidsTheSlowAxisOfAMesh) {
  System system = preset_system("tree:2x2", sample()).value();
  const MeshRef mesh = mesh_of("hosts=2,in=2");
  const Graph graph = with_shard_plan(subject("graph @g(%x: f32[64, 64]) -> f32[64, 64] {\n"
                                              "  %y = tanh %x\n"
                                              "  return %y\n"
                                              "}\n"),
                                      parse_shard_plan("mesh hosts=2,in=2\n"
                                                       "shard %x = [in, -]\n"
                                                       "shard %y = [in, -]\n"
                                                       "output 0 = [hosts, -]\n",
                                                       "p")
                                          .value())
                          .value();
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  ShardPrices prices(system, {{cost}}, mesh);
  const Partition by_bytes = partition_exactly(graph, mesh).value();
  ASSERT_EQ(by_bytes.messages.size(), 1u);
  EXPECT_EQ(by_bytes.messages[0].kind, ReshardKind::permute);
  const Partition by_price = partition_exactly(graph, mesh, prices.steps()).value();
  ASSERT_EQ(by_price.messages.size(), 1u);
  EXPECT_EQ(by_price.messages[0].kind, ReshardKind::all_gather);
  EXPECT_EQ(judge_mesh(graph, by_price, 1), "");
  const double seconds =
      prices.change({.dims = {{{1, 1, 2}}, {}}}, {.dims = {{{0, 1, 2}}, {}}}, {64, 64}, 4).value();
  const double permute = prices.steps()({.kind = ReshardKind::permute,
                                         .part = {},
                                         .bytes = by_bytes.messages[0].bytes,
                                         .have = {{{1, 1, 2}}, {}},
                                         .want = {{{0, 1, 2}}, {}}},
                                        4);
  EXPECT_LT(seconds, permute);
}

// The batch alone is a choice, too.
TEST(AutoShard, IsPredictedNoSlowerThanTheBatchAlone) {
  for (const std::string_view model : {"mlp", "vit_b16"}) {
    const Graph graph =
        shard_subject(build_zoo_model(model, {.size = ZooSize::tiny, .batch = 16}).value())
            .value()
            .graph;
    System system = ring(4);
    system.links[0].bytes_per_second = 1e9;
    system.links[0].latency = 1e-6;
    const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
    const MeshRef mesh = mesh_of("x=4");
    ShardPrices prices(system, {{cost}}, mesh);
    const JudgedSharding batch = batch_alone(graph, mesh, system, {{cost}}, prices).value();
    EXPECT_TRUE(is_all_stated(batch.graph));
    // The search has next to no time, so its own solutions are not good.
    const AutoSharding made =
        auto_shard(graph, mesh, system, {{cost}}, {.seconds = 0, .steps = 1}).value();
    EXPECT_LE(made.best.seconds, batch.seconds) << model;
  }
}

// The problem asks for the time before each option of a node. Where it is over, the options with a
// price are kept, and nodes behind stay whole.
TEST(AutoShard, MakesAProblemInTheTimeThatIsGiven) {
  const Graph graph = subject(layers(512));
  const System system = ring(4);
  const std::shared_ptr<const Cost> cost = std::make_shared<AnalyticCost>(system.targets[0]);
  const MeshRef mesh = mesh_of("x=2,y=2");
  ShardPrices prices(system, {{cost}}, mesh);
  const ShardProblem all = shard_problem(graph, mesh, prices).value();
  const size_t nodes = graph.node_count() + graph.outputs().size();
  size_t cut_short = 0;
  for (size_t in_time = 0; in_time <= 60; ++in_time) {
    size_t asked = 0;
    const ShardProblem made =
        shard_problem(graph, mesh, prices, {.is_late = [&] { return ++asked > in_time; }}).value();
    ASSERT_TRUE(check(made.problem).ok());
    EXPECT_LE(asked, in_time + 1);  // nobody asks again behind a yes
    size_t full = 0;
    while (full < nodes && made.options[full].size() == all.options[full].size()) ++full;
    const size_t has = full < nodes ? made.options[full].size() : 0;
    if (has > 1) ++cut_short;
    for (size_t i = full + 1; i < nodes; ++i) EXPECT_EQ(made.options[i].size(), 1u) << i;
    for (size_t i = 0; i < nodes; ++i)
      EXPECT_TRUE(std::ranges::equal(
          made.problem.nodes[i].costs,
          std::span(all.problem.nodes[i].costs).first(made.problem.nodes[i].costs.size())))
          << i;
    EXPECT_EQ(evaluate(made.problem, Assignment(nodes, 0))->cost,
              evaluate(all.problem, Assignment(nodes, 0))->cost);
    if (in_time == 0) EXPECT_EQ(made.late, nodes);
  }
  EXPECT_GT(cut_short, 3u);
  // Nothing but the undivided way is left, and the sum has no bound.
  const AutoSharding late =
      auto_shard(graph, mesh, system, {{cost}}, {.seconds = 1e-9, .steps = 10}).value();
  EXPECT_GT(late.late, 0u);
  EXPECT_FALSE(late.bound.has_value());
}

TEST(AutoShard, TakesTheMeshOfASystem) {
  EXPECT_EQ(mesh_text(*mesh_of_system(preset_system("torus:2x4", sample()).value())), "x=2,y=4");
  EXPECT_EQ(mesh_of_system(preset_system("tree:2x4", sample()).value())->device_count(), 8);
  EXPECT_EQ(mesh_text(*mesh_of_system(preset_system("package:3", sample()).value())), "x=3");
}

// Two layers of one form: the values of their loops have the same names.
TEST(AutoShard, DividesTheLoopsOfARecurrentModel) {
  const Graph graph = build_zoo_model("lstm", {.size = ZooSize::tiny, .batch = 64}).value();
  const ShardSubject model = shard_subject(graph).value();
  const Result<AutoSharding> made = sharded(model.graph, "x=2", ring(2));
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  inputs.insert(inputs.end(), model.constants.begin(), model.constants.end());
  EXPECT_EQ(judge_mesh(model.graph, made->best.partition, inputs), "");
  EXPECT_LT(made->best.seconds, *made->whole);
}

// ---- Many devices -------------------------------------------------------------------------------

// More devices than a timeline of each has room for: exchanges have prices all the same, and more
// devices are never slower.
TEST(AutoShard, DividesAmongThousandsOfDevices) {
  const Graph graph = subject(layers(4096));
  double of_fewer = std::numeric_limits<double>::infinity();
  for (const std::string_view preset : {"tree:1x8", "tree:64x8", "tree:8x64x8"}) {
    const System system = preset_system(preset, sample()).value();
    const Result<AutoSharding> made =
        sharded(graph, mesh_text(*mesh_of_system(system)), system, {});
    ASSERT_TRUE(made.ok()) << preset << made.error().to_string();
    ASSERT_TRUE(made->whole.has_value());
    EXPECT_LT(made->best.seconds, 0.3 * *made->whole) << preset;
    EXPECT_LE(made->best.seconds, of_fewer) << preset;
    of_fewer = made->best.seconds;
  }
}

// Weights are too large for a device, so all of a host have parts of them, and exchange.
TEST(AutoShard, PricesExchangesOfManyHosts) {
  const System system = preset_system("tree:64x8", sample()).value();
  const MeshRef mesh = mesh_of_system(system);
  const Graph graph = subject(layers(4096));
  const int64_t limit = 2 << 20;
  const Result<AutoSharding> made = sharded(graph, mesh_text(*mesh), system, {.memory = limit});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_LE(made->best.memory, limit);
  EXPECT_FALSE(made->best.partition.messages.empty());
  EXPECT_LT(made->price, 1);  // seconds: no exchange has the price of what nobody can tell
}

// ---- Searches -----------------------------------------------------------------------------------

// All look for the same least sum; those that are not the first one prove nothing by themselves.
TEST(AutoShard, HasRivalsBehindOneInterface) {
  const Graph graph = subject(layers(512));
  const Result<AutoSharding> best = sharded(graph, "x=2,y=2", ring(4));
  ASSERT_TRUE(best.ok()) << best.error().to_string();
  ASSERT_TRUE(best->is_optimal);
  for (const std::string_view search : {"chain", "greedy", "random"}) {
    const Result<AutoSharding> made =
        sharded(graph, "x=2,y=2", ring(4), {.search = std::string(search)});
    ASSERT_TRUE(made.ok()) << search << made.error().to_string();
    EXPECT_LE(made->best.seconds, *made->whole) << search;
    EXPECT_GE(made->price, best->price) << search;
    if (search != "random") EXPECT_EQ(made->price, best->price) << search;
    const Result<AutoSharding> again =
        sharded(graph, "x=2,y=2", ring(4), {.search = std::string(search)});
    EXPECT_EQ(print_shard_plan(again->best.graph, *mesh_of("x=2,y=2")),
              print_shard_plan(made->best.graph, *mesh_of("x=2,y=2")))
        << search;
    EXPECT_EQ(judge_mesh(graph, made->best.partition, 1), "") << search;
  }
  EXPECT_THAT(sharded(graph, "x=2,y=2", ring(4), {.search = "best"}),
              refuses(ErrorCode::usage, "'best' ... windows, chain"));
}

TEST(AutoShard, KeepsWithinTheMemoryByEachSearch) {
  System system = ring(4);
  system.links[0].bytes_per_second = 1e7;
  const Graph graph = subject(layers(64));
  const int64_t limit = sharded(graph, "x=4", system)->best.memory * 3 / 5;
  for (const std::string_view search : {"chain", "greedy", "random"}) {
    const Result<AutoSharding> made =
        sharded(graph, "x=4", system, {.search = std::string(search), .memory = limit});
    ASSERT_TRUE(made.ok()) << search << made.error().to_string();
    EXPECT_LE(made->best.memory, limit) << search;
  }
}

// ---- Models -------------------------------------------------------------------------------------

// A graph that devices divide, and numbers for it.
struct ZooCase {
  Graph graph;
  std::vector<Tensor> inputs;
};

Result<ZooCase> model_of(const std::string& name) {
  ZooCase made = {HONE_TRY(build_zoo_model(name, {.size = ZooSize::tiny, .batch = 4})), {}};
  made.inputs = HONE_TRY(random_inputs(made.graph, 1));
  return made;
}

// The forward pass, the derivative and the update of the weights.
Result<ZooCase> step_of(const std::string& name) {
  const Graph model = HONE_TRY(build_zoo_model(name, {.size = ZooSize::tiny, .batch = 4}));
  TrainingStep step =
      HONE_TRY(training_step(model, {.optimizer = HONE_TRY(find_optimizer("momentum"))}));
  ZooCase made = {std::move(step.graph), {}};
  made.inputs = HONE_TRY(random_inputs(made.graph, 1));
  for (size_t i = 0; i < made.inputs.size(); ++i)
    for (const NamedTensor& each : step.state)
      if (each.name == made.graph.name(made.graph.inputs()[i])) made.inputs[i] = each.tensor;
  return made;
}

struct ZooTally {
  int divided = 0, seen = 0;
};

// Less memory than the choice without a limit takes: another choice keeps within it and computes
// the same, or an error says that none does.
void judge_less_memory(const Graph& graph, const std::string& mesh, int64_t devices, int64_t limit,
                       const std::vector<Tensor>& inputs) {
  const Result<AutoSharding> made = sharded(graph, mesh, ring(devices), {.memory = limit});
  if (!made.ok()) {
    EXPECT_THAT(made, refuses(ErrorCode::limit, "too much"));
    return;
  }
  EXPECT_LE(made->best.memory, limit);
  EXPECT_EQ(judge_mesh(graph, made->best.partition, inputs), "");
}

// On 2, 4 and 8 devices: whatever is chosen computes the same.
void judge_zoo_case(const ZooCase& one, const std::string& name, int64_t devices, ZooTally& total) {
  const Result<ShardSubject> made = shard_subject(one.graph);
  ASSERT_TRUE(made.ok()) << name << made.error().to_string();
  const std::string mesh = devices == 8 ? "x=4,y=2" : fmt::format("x={}", devices);
  const Result<AutoSharding> chosen = sharded(made->graph, mesh, ring(devices), {});
  ASSERT_TRUE(chosen.ok()) << name << chosen.error().to_string();
  std::vector<Tensor> inputs = one.inputs;
  inputs.insert(inputs.end(), made->constants.begin(), made->constants.end());
  EXPECT_EQ(judge_mesh(made->graph, chosen->best.partition, inputs), "") << name << mesh;
  SCOPED_TRACE(name);
  judge_less_memory(made->graph, mesh, devices, chosen->best.memory * 9 / 10, inputs);
  ++total.seen;
  if (chosen->whole && chosen->best.seconds < *chosen->whole) ++total.divided;
}

void judge_zoo(uint64_t parts, bool trains) {
  uint64_t number = 0;
  ZooTally total;
  for (const ZooEntry& entry : zoo_entries())
    for (const int64_t devices : {2, 4, 8}) {
      if (!tested::in_share(number++, parts)) continue;
      const std::string name(entry.name);
      const Result<ZooCase> one = trains ? step_of(name) : model_of(name);
      if (!one.ok() && trains) {  // it has no derivative, and the error says why
        EXPECT_THAT(one, refuses(ErrorCode::unsupported, "")) << name;
        continue;
      }
      ASSERT_TRUE(one.ok()) << name << one.error().to_string();
      judge_zoo_case(*one, fmt::format("{} on {} ", name, devices), devices, total);
    }
  if (total.seen > 0) EXPECT_GT(total.divided, 0);
}

TEST(AutoShard, OfZooModelsComputesTheSame) { judge_zoo(60, false); }
TEST(AutoShard, OfZooTrainingStepsComputesTheSame) { judge_zoo(120, true); }
TEST(AutoShard, DISABLED_SweepOfZooModels) { judge_zoo(1, false); }
TEST(AutoShard, DISABLED_SweepOfZooTrainingSteps) { judge_zoo(1, true); }

}  // namespace
}  // namespace hone::HONE_FILE
