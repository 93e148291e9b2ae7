#include "planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "cost/analytic.h"
#include "ir/graph_copy.h"
#include "ir/text.h"
#include "plan/random_plan.h"
#include "planner/schedules.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"
#include "zoo/random/generator.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

Target target() { return parse_target(kSampleTarget, "t").value(); }

void expect_completed(const Graph& graph) {
  const Result<Plan> plan = complete(graph, {}, target());
  ASSERT_TRUE(plan.ok()) << plan.error().to_string() << print(graph);
  const Status good = check_complete(*plan, graph, target());
  EXPECT_TRUE(good.ok()) << good.error().to_string() << print(graph) << print(*plan);
  EXPECT_EQ(parse_plan(print(*plan)).value(), *plan);
  EXPECT_EQ(complete(graph, *plan, target()).value(), *plan);
}

TEST(Planner, CompletesPlansOfRandomGraphs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_completed(prepare(random_graph({.seed = seed, .symbolic = seed % 4 == 0})).value());
  }
}

TEST(Planner, CompletesPlansOfTheZoo) {
  for (const ZooEntry& model : zoo_entries()) {
    SCOPED_TRACE(model.name);
    expect_completed(prepare(build_zoo_model(model.name, {.size = ZooSize::tiny}).value()).value());
  }
}

TEST(Planner, CompletesPlansOfPadsWithoutElements) {
  expect_completed(prepare(parse_graph(R"(graph @g(%x: u8[1, 1, 2], %b: u8[]) -> u8[2, 2, 0] {
    %y = pad %x, %b {low = [0, 0, -1], high = [1, 1, -1]}
    return %y
  })")
                               .value())
                       .value());
}

// The groups that the planner makes of a prepared graph, "{a, b} {c}", and its views.
std::string groups_of(std::string_view text, std::string_view entries = "") {
  const Graph graph = prepare(parse_graph(text).value()).value();
  const Plan partial = parse_plan(fmt::format("plan @g {{ {} }}", entries)).value();
  const Result<Plan> plan = complete(graph, partial, target());
  if (!plan.ok()) return plan.error().to_string();
  EXPECT_TRUE(check_complete(*plan, graph, target()).ok());
  std::vector<std::string> parts;
  for (const Group& group : plan->fuse) parts.push_back("{" + join(group.nodes, ", ") + "}");
  for (const auto& [name, is_view] : plan->view)
    if (is_view) parts.push_back("view " + name);
  return join(parts, " ");
}

TEST(Planner, FusesRowsOfSoftmaxAndNorms) {
  EXPECT_EQ(groups_of("graph @g(%x: f32[64, 128]) -> f32[64, 128] { "
                      "%y = softmax %x {axis = 1} return %y }"),
            "{y.reduce, y.reshape, y.broadcast, y.sub, y.exp, y.reduce_2, y.reshape_2, "
            "y.broadcast_2, y}");
  const std::string norm = groups_of(
      "graph @g(%x: f32[64, 128], %s: f32[128], %b: f32[128]) -> f32[64, 128] { "
      "%y = layer_norm %x, %s, %b {axis = 1} return %y }");
  EXPECT_EQ(norm.find("} {"), std::string::npos) << norm;
}

TEST(Planner, FusesEpiloguesOntoContractions) {
  EXPECT_EQ(groups_of(R"(graph @g(%x: f32[64, 32], %w: f32[32, 16], %b: f32[16], %r: f32[64, 16])
                           -> f32[64, 16] {
    %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %c = broadcast %b {dims = [64, 16], map = [1]}
    %a = add %d, %c
    %t = tanh %a
    %y = add %t, %r
    return %y
  })"),
            "{d, c, a, t, y}");
}

TEST(Planner, ComputesNothingManyTimesOver) {
  // exp would be computed for each of the 16 columns.
  EXPECT_EQ(groups_of(R"(graph @g(%x: f32[64, 32], %w: f32[32, 16]) -> f32[64, 16] {
    %e = exp %x
    %y = dot %e, %w {lhs_contract = [1], rhs_contract = [0]}
    return %y
  })"),
            "{e} {y}");
}

// An attention of 8 heads and 512 positions: the scores of one head take a megabyte.
TEST(Planner, ScoresOfAnAttentionStayInACache) {
  const Graph graph =
      prepare(parse_graph(R"(graph @g(%q: f32[8, 512, 64], %k: f32[8, 512, 64], %v: f32[8, 512, 64])
                                -> f32[8, 512, 64] {
    %s = dot %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
    %p = softmax %s {axis = 2}
    %o = dot %p, %v {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
    return %o
  })")
                  .value())
          .value();
  const Plan plan = complete(graph, {}, target()).value();
  ASSERT_EQ(plan.schedule.size(), 1U) << print(plan);
  const Schedule& schedule = plan.schedule.begin()->second;
  EXPECT_EQ(schedule.algorithm(), Algorithm::chain);
  ASSERT_EQ(schedule.get<ChainFields>().stages.size(), 3U) << print(plan);
  EXPECT_EQ(schedule.get<ChainFields>().stages[1].algorithm(), Algorithm::nest);
  EXPECT_EQ(schedule.get<ChainFields>().stages[2].algorithm(), Algorithm::gemm);
  EXPECT_TRUE(check_complete(plan, graph, target()).ok());
}

// The results of a depthwise conv for the 1x1 conv behind it, with 6.5 MB.
TEST(Planner, RowsOfLargeImagesStayInACache) {
  const Graph graph = prepare(parse_graph(R"(
graph @g(%x: f32[1, 64, 160, 160], %w: f32[64, 1, 3, 3], %v: f32[64, 64, 1, 1])
    -> f32[1, 64, 160, 160] {
  %d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 64}
  %t = max %d, 0
  %y = conv %t, %v
  return %y
})")
                                  .value())
                          .value();
  Target target = HONE_FILE::target();
  const auto kernels = [&](const Heuristics& heuristics) {
    const Plan plan =
        complete(graph, {}, target, AnalyticCost(target), {.heuristics = heuristics}).value();
    EXPECT_TRUE(check_complete(plan, graph, target).ok()) << print(plan);
    EXPECT_EQ(plan.layout.contains("t"), plan.schedule.size() == 2) << print(plan);
    return plan.schedule;
  };
  EXPECT_EQ(kernels({}).size(), 2U);  // the last cache has room for it
  target.caches.back().bytes = 32 << 20;
  const auto schedules = kernels({});
  ASSERT_EQ(schedules.size(), 1U);
  const Schedule& schedule = schedules.begin()->second;
  ASSERT_EQ(schedule.algorithm(), Algorithm::chain);
  EXPECT_EQ(schedule.order, std::vector<int>{2});
  EXPECT_EQ(schedule.get<ChainFields>().stages[0].algorithm(), Algorithm::nest);
  EXPECT_EQ(schedule.get<ChainFields>().stages[1].algorithm(), Algorithm::gemm);
  EXPECT_EQ(kernels({.image_chains = false}).size(), 2U);
}

// Schedules of a conv and the pool behind it.
std::map<uint64_t, Schedule> of_pool(std::string_view conv, std::string_view pool,
                                     const Heuristics& heuristics = {}) {
  const std::string text = fmt::format(R"(
graph @g({}
  %y = window_reduce %d {{{}}}
  return %y
}})",
                                       conv, pool);
  const Graph graph = parse_graph(text).value();
  const Plan plan =
      complete(graph, {}, target(), AnalyticCost(target()), {.heuristics = heuristics}).value();
  EXPECT_TRUE(check_complete(plan, graph, target()).ok()) << print(plan);
  return plan.schedule;
}

// A few at a time. In one nest, which would be cheaper by the price, the conv has no tiles.
TEST(Planner, RowsOfAConvStayInACacheForThePool) {
  constexpr std::string_view kConv = R"(%x: f32[1, 64, 112, 112], %w: f32[64, 64, 1, 1])
    -> f32[1, 64, 56, 56] {
  %d = conv %x, %w)";
  for (const char* kind : {"max", "sum"}) {
    const std::string pool =
        fmt::format("kind = {}, window = [1, 1, 2, 2], stride = [1, 1, 2, 2]", kind);
    const auto schedules = of_pool(kConv, pool);
    ASSERT_EQ(schedules.size(), 1U);
    const Schedule& schedule = schedules.begin()->second;
    ASSERT_EQ(schedule.algorithm(), Algorithm::chain);
    EXPECT_EQ(schedule.order, std::vector<int>{2});
    EXPECT_EQ(schedule.get<ChainFields>().stages[0].algorithm(), Algorithm::gemm);
    EXPECT_EQ(of_pool(kConv, pool, {.pool_chains = false}).size(), 2U);
  }
}

// Rows that overlap are computed again if that costs less than passing them on, as it does where
// many images leave the last cache.
TEST(Planner, PoolsJoinConvsWhereThatPays) {
  constexpr std::string_view kPool =
      "kind = max, window = [1, 1, 3, 3], stride = [1, 1, 2, 2], pad_low = [0, 0, 1, 1]";
  EXPECT_EQ(of_pool(R"(%x: f32[16, 3, 224, 224], %w: f32[64, 3, 7, 7])
    -> f32[16, 64, 56, 56] {
  %d = conv %x, %w {stride = [2, 2], pad_low = [3, 3], pad_high = [3, 3]})",
                    kPool)
                .size(),
            1U);
  EXPECT_EQ(of_pool(R"(%x: f32[1, 64, 56, 56], %w: f32[64, 64, 3, 3])
    -> f32[1, 64, 28, 28] {
  %d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]})",
                    kPool)
                .size(),
            2U);
  // Stages have no transforms.
  EXPECT_EQ(of_pool(R"(%x: f32[16, 64, 112, 112], %w: f32[64, 64, 3, 3])
    -> f32[16, 64, 56, 56] {
  %d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4})",
                    kPool)
                .size(),
            2U);
}

// Code for all sizes: panels of the weights are packed once for all rows.
TEST(Planner, OpenSizesAreGemms) {
  const auto schedule = [](std::string_view text) {
    const Graph graph = parse_graph(text).value();
    const Plan alone = parse_plan("plan @g { threads = 1 }").value();
    const Plan plan = complete(graph, alone, target()).value();
    EXPECT_TRUE(check_complete(plan, graph, target()).ok()) << print(plan);
    return plan.schedule.begin()->second;
  };
  const Schedule product = schedule(R"(
graph @g(%x: f32[N, 512], %w: f32[512, 512]) -> f32[N, 512] where N in 1..1024 {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})");
  ASSERT_EQ(product.algorithm(), Algorithm::gemm) << print(product);
  EXPECT_EQ(product.order, (std::vector<int>{1, 0}));
  EXPECT_EQ(product.get<GemmFields>().pack_rhs, Packing::panels);
  const Schedule conv = schedule(R"(
graph @g(%x: f32[N, 64, 28, 28], %w: f32[64, 64, 3, 3]) -> f32[N, 64, 28, 28] where N in 1..16 {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})");
  EXPECT_EQ(conv.algorithm(), Algorithm::gemm) << print(conv);
}

// Where a chain does not go with what is said to be in place, all other groups stay.
TEST(Planner, WhatIsInPlaceIsNoChain) {
  const Graph graph = prepare(parse_graph(R"(
graph @g(%x: f32[512, 64], %w: f32[64, 64], %y: f32[512, 64] donate 0, %p: f32[100])
    -> (f32[512, 64], f32[100]) {
  %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %t = tanh %d
  %z = dot %t, %w {lhs_contract = [1], rhs_contract = [0]}
  %o = add %z, %y
  %a = exp %p
  %c = neg %a
  return %o, %c
})")
                                  .value())
                          .value();
  const Plan partial = parse_plan("plan @g { in_place %o = yes }").value();
  const Plan plan = complete(graph, partial, target()).value();
  std::set<std::vector<std::string>> groups;
  for (const Group& group : plan.fuse) groups.insert(group.nodes);
  EXPECT_EQ(groups, (std::set<std::vector<std::string>>{{"d", "t"}, {"z", "o"}, {"a", "c"}}));
}

TEST(Planner, ReshapesAreViewsAtTheEdgesOfGroups) {
  EXPECT_EQ(groups_of(R"(graph @g(%x: f32[64, 32]) -> f32[32, 64] {
    %a = exp %x
    %r = reshape %a {dims = [2048]}
    %b = sort %r {axis = 0}
    %s = reshape %b {dims = [32, 64]}
    %c = neg %s
    return %c
  })"),
            "{a} {b} {c} view r view s");
}

TEST(Planner, KeepsWhatIsSaid) {
  constexpr std::string_view text = R"(graph @g(%x: f32[64, 32]) -> f32[64, 32] {
    %a = exp %x
    %b = neg %a
    %c = tanh %b
    %d = abs %c
    return %d
  })";
  EXPECT_EQ(groups_of(text), "{a, b, c, d}");
  EXPECT_EQ(groups_of(text, "fuse @k0 = {%b}"), "{b} {a} {c, d}");
  EXPECT_EQ(groups_of(text, "layout %b = [1, 0]"), "{a, b} {c, d}");
  EXPECT_EQ(groups_of(text, "offset %c = 640"), "{a, b, c} {d}");
  EXPECT_THAT(groups_of(text, "threads = 9"), says("9 ... 1..8 ... cores ... threads"));
  EXPECT_THAT(groups_of(text, "schedule 0x0000000000000001 = {algorithm = generic}"),
              says("kernel ... hash ... schedule 0x0000000000000001"));
}

Schedule only_schedule(std::string_view text) {
  const Plan plan = complete(prepare(parse_graph(text).value()).value(), {}, target()).value();
  EXPECT_EQ(plan.schedule.size(), 1u);
  return plan.schedule.begin()->second;
}

TEST(Planner, SchedulesFollowThePrice) {
  const Schedule product = only_schedule(
      "graph @g(%x: f32[1008, 1024], %w: f32[1024, 1024]) -> f32[1008, 1024] { "
      "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} return %y }");
  EXPECT_EQ(product.algorithm(), Algorithm::gemm);
  EXPECT_GT(product.threads, 0);
  ASSERT_EQ(product.lanes.size(), 1u);
  EXPECT_EQ(product.lanes[0].dim, 1);  // where %w and %y are contiguous
  const Schedule softmax = only_schedule(
      "graph @g(%x: f32[512, 1024]) -> f32[512, 1024] { %y = softmax %x {axis = 1} return %y }");
  EXPECT_EQ(softmax.algorithm(), Algorithm::nest);
  EXPECT_EQ(softmax.get<NestFields>().row, 1);
  EXPECT_EQ(softmax.threads, 1);
  ASSERT_EQ(softmax.lanes.size(), 1u);
  EXPECT_EQ(softmax.lanes[0].dim, 1);
  // Several short rows at once, since each waits for its own sums.
  const Schedule rows = only_schedule(
      "graph @g(%x: f32[768, 64]) -> f32[768, 64] { %y = softmax %x {axis = 1} return %y }");
  EXPECT_GE(tile_of(rows.unroll, 0), 2);
  const Schedule small =
      only_schedule("graph @g(%x: f32[4, 16]) -> f32[4, 16] { %y = exp %x return %y }");
  EXPECT_EQ(small.threads, 0);
  EXPECT_EQ(small.lanes.size(), 1u);
}

// Channels of 64 and more, in vectors of 16 lanes.
// Blocks of channels or channels last: what they cost differs little.
TEST(Planner, ImagesBetweenConvsHaveTheirChannelsSideBySide) {
  const Graph graph = prepare(build_zoo_model("resnet18", {}).value()).value();
  // Winograd transforms its weights when a model is built, however they lie.
  PlannerOptions options;
  ASSERT_TRUE(leave_out(options.heuristics, "winograd").ok());
  const Plan plan = complete(graph, {}, target(), AnalyticCost(target()), options).value();
  int beside = 0, packed = 0;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const auto layout = plan.layout.find(std::string(graph.name(ValueId{i})));
    if (layout == plan.layout.end() || graph.type(ValueId{i}).rank() != 4) continue;
    const bool is_constant = graph.opcode(graph.producer(ValueId{i})) == Opcode::constant;
    if (is_constant && !layout->second.is_row_major()) ++packed;
    if (!is_constant && layout->second.parts.back().dim == 1) ++beside;
  }
  EXPECT_GE(packed, 15);
  EXPECT_GE(beside, 15);
}

// Two convs, whose channels are joined, then with the image itself, for a third.
Graph joined_between_convs(int64_t channels) {
  Builder b;
  Rng rng(1);
  const auto conv = [&](Value x, int64_t features) {
    const Type type = Type::get(DType::f32, {features, x.dim(1), 3, 3});
    const Value y = b.op(Opcode::conv, {x, b.constant(random_tensor(type, rng))},
                         {{"pad_low", Ints{1, 1}}, {"pad_high", Ints{1, 1}}});
    return relu(y);
  };
  const Value x = conv(b.parameter("x", DType::f32, {1, 32, 14, 14}), 64);
  const Value inner = concat({conv(x, channels), conv(x, 64)}, 1).named("inner");
  const Value outer = concat({relu(inner), inner}, 1).named("outer");
  return prepare(b.finish({conv(conv(outer, 32), 32)}).value()).value();
}

TEST(Planner, ChannelsOfAnImageAreJoinedInMemory) {
  const auto plan_without = [](const Graph& graph, std::string_view names) {
    const AnalyticCost cost(target());
    PlannerOptions options;
    if (!names.empty()) options.heuristics = heuristics_without(names).value();
    Plan plan = complete(graph, {}, target(), cost, options).value();
    const Status good = check_complete(plan, graph, target());
    EXPECT_TRUE(good.ok()) << good.error().to_string() << print(plan);
    return plan;
  };
  const auto views = [](const Plan& plan) {
    std::string names;
    for (const auto& [name, is_view] : plan.view) names += is_view ? name + " " : "";
    return names;
  };
  const Graph graph = joined_between_convs(48);
  const Plan plan = plan_without(graph, "");
  EXPECT_EQ(views(plan), "inner outer ");
  EXPECT_EQ(print(plan.layout.at("outer")), "[0, 1/16, 2, 3, 1%16]");
  EXPECT_FALSE(plan.layout.contains("inner"));
  EXPECT_EQ(plan.fuse.size(), 6U) << print(plan);  // five convs with their epilogues
  EXPECT_EQ(views(plan_without(graph, "concat_views")), "");
  // No whole blocks.
  EXPECT_EQ(views(plan_without(joined_between_convs(40), "")), "");
  // With channels last nothing lies side by side: what is joined otherwise is computed after all.
  const Plan last = plan_without(graph, "blocked_images");
  EXPECT_EQ(print(last.layout.at("outer")), "[0, 2, 3, 1]");
  EXPECT_EQ(views(last), "");
  EXPECT_EQ(last.fuse.size(), 8U) << print(last);
  EXPECT_EQ(views(plan_without(graph, "blocked_images,last_images")), "inner outer ");
}

// Two halves of the channels of an image: one goes through a conv, and both are joined again.
Graph split_between_convs(int64_t channels) {
  Builder b;
  Rng rng(1);
  const auto conv = [&](Value x, int64_t features, int64_t side) {
    const Type type = Type::get(DType::f32, {features, x.dim(1), side, side});
    const Value y =
        b.op(Opcode::conv, {x, b.constant(random_tensor(type, rng))},
             {{"pad_low", Ints{side / 2, side / 2}}, {"pad_high", Ints{side / 2, side / 2}}});
    return relu(y);
  };
  const auto half = [&](Value x, int64_t from) { return slice(x, 1, from, from + channels); };
  const Value x =
      conv(b.parameter("x", DType::f32, {1, 32, 14, 14}), 2 * channels, 1).named("whole");
  const Value y = conv(half(x, channels).named("right"), channels, 3);
  return prepare(b.finish({conv(concat({half(x, 0), y}, 1).named("outer"), 32, 1)}).value())
      .value();
}

TEST(Planner, HalvesOfTheChannelsOfAnImageAreViews) {
  const auto plan_of = [](int64_t channels) {
    const Graph graph = split_between_convs(channels);
    Plan plan = complete(graph, {}, target(), AnalyticCost(target()), {}).value();
    const Status good = check_complete(plan, graph, target());
    EXPECT_TRUE(good.ok()) << good.error().to_string() << print(plan);
    return plan;
  };
  const Plan blocks = plan_of(48);
  EXPECT_EQ(print(blocks.layout.at("whole")), "[0, 1/16, 2, 3, 1%16]");
  EXPECT_TRUE(blocks.view.at("right")) << print(blocks);
  // The left half has to be copied to where the concat has it, and nothing else.
  EXPECT_TRUE(blocks.view.at("outer"));
  EXPECT_EQ(blocks.fuse.size(), 4U) << print(blocks);
  // Halves that are no whole blocks: no kernel copies them either.
  const Plan odd = plan_of(58);
  EXPECT_NE(print(odd.layout.at("whole")), "[0, 1/16, 2, 3, 1%16]");
  EXPECT_EQ(odd.fuse.size(), 4U) << print(odd);
}

TEST(Planner, StopsWhenItIsCancelled) {
  const Graph graph =
      prepare(parse_graph("graph @g(%x: f32[64]) -> f32[64] { %y = exp %x return %y }").value())
          .value();
  CancelToken cancel;
  const AnalyticCost cost(target());
  const Plan plan = complete(graph, {}, target(), cost, {.cancel = &cancel}).value();
  cancel.cancel();
  EXPECT_EQ(complete(graph, {}, target(), cost, {.cancel = &cancel}).error().code(),
            ErrorCode::interrupted);
  EXPECT_EQ(complete(graph, plan, target(), cost, {.cancel = &cancel}).error().code(),
            ErrorCode::interrupted);
}

TEST(Planner, StopsBeforeTheNextKernel) {
  const auto body = [](std::string_view op) {
    const Graph graph =
        parse_graph(fmt::format("graph @g(%x: f32[64]) -> f32[64] {{ %y = {} %x return %y }}", op))
            .value();
    const NodeId node = graph.producer(graph.outputs()[0]);
    return body_of(graph, std::span(&node, 1), {});
  };
  CancelToken cancel;
  const Target target = HONE_FILE::target();
  const AnalyticCost cost(target);
  ScheduleChooser chooser(target, cost, 1, {.cancel = &cancel});
  EXPECT_TRUE(chooser.choose(body("exp")).ok());
  cancel.cancel();
  EXPECT_EQ(chooser.choose(body("neg")).error().code(), ErrorCode::interrupted);
}

// The graph with constants for parameters whose names begin with "w".
Graph with_weights(std::string_view text) {
  const Graph graph = parse_graph(text).value();
  GraphCopy copy(graph);
  uint64_t seed = 0;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) != Opcode::parameter || !graph.name(graph.result(n)).starts_with("w")) {
      copy.node(n).value();
      continue;
    }
    const Type type = graph.type(graph.result(n));
    Rng rng(++seed);
    std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
    for (double& number : numbers) number = rng.uniform();
    copy.replace(graph.result(n), copy.target().add_constant(Tensor::from_reals(type, numbers)));
  }
  return prepare(copy.finish()).value();
}

// "%x.copy of %x for a, b as [1, 0]"
std::string copies_of(const Graph& graph, std::string_view entries = "") {
  const Plan partial = parse_plan(fmt::format("plan @g {{ {} }}", entries)).value();
  const Result<Plan> plan = complete(graph, partial, target());
  if (!plan.ok()) return plan.error().to_string();
  EXPECT_TRUE(check_complete(*plan, graph, target()).ok());
  EXPECT_EQ(complete(graph, *plan, target()).value(), *plan);
  std::string text;
  for (const auto& [name, copy] : plan->copy)
    text += fmt::format("%{} of %{} for {} as {}\n", name, copy.of, join(copy.readers, ", "),
                        print(plan->layout.at(name)));
  return text;
}

// A value that the plan copies lies as the region that reads it.
TEST(Planner, CopiesBelongToRegions) {
  const Graph graph = with_weights(R"(
graph @g(%x: f32[1, 256, 56, 56], %w1: f32[256, 1, 5, 5], %w2: f32[256, 1, 5, 5],
         %w3: f32[256, 256, 1, 1]) {
  %a = conv %x, %w1 {stride = [2, 2], pad_low = [2, 2], pad_high = [2, 2], groups = 256}
  %b = conv %x, %w2 {stride = [2, 2], pad_low = [2, 2], pad_high = [2, 2], groups = 256}
  %d = add %a, %b
  %e = conv %d, %w3
  return %e
})");
  EXPECT_EQ(copies_of(graph), "");
  EXPECT_EQ(copies_of(graph, "copy %x.c = %x for [%a, %b]"),
            "%x.c of %x for a, b as [0, 2, 3, 1]\n");
}

// An embedding that is also the last layer: one reads rows, the other columns side by side.
TEST(Planner, WeightsLieAsEachReaderWantsThem) {
  const Graph tied = with_weights(R"(
graph @g(%ids: i64[64], %w: f32[512, 256]) {
  %x = gather %w, %ids {offset_dims = [1], collapsed_dims = [0], index_map = [0],
                        index_vector_dim = 1, sizes = [1, 256]}
  %e = tanh %x
  %y = dot %e, %w {lhs_contract = [1], rhs_contract = [1]}
  return %y
})");
  EXPECT_EQ(copies_of(tied), "%w.copy of %w for y as [0/16, 1, 0%16]\n");
  // The group may have a schedule for what it reads now.
  EXPECT_EQ(copies_of(tied, "fuse @k = {%y}"), "");
  EXPECT_EQ(copies_of(tied, "layout %w = [0, 1]"), "");
  // Both agree.
  const Graph twice = with_weights(R"(
graph @g(%x: f32[64, 256], %w: f32[512, 256], %v: f32[512, 256]) {
  %a = dot %x, %w {lhs_contract = [1], rhs_contract = [1]}
  %t = tanh %a
  %b = dot %t, %v {lhs_contract = [1], rhs_contract = [0]}
  %c = dot %b, %w {lhs_contract = [1], rhs_contract = [1]}
  return %c
})");
  EXPECT_EQ(copies_of(twice), "");
  const Plan plan = complete(twice, {}, target()).value();
  EXPECT_EQ(print(plan.layout.at("w")), "[0/16, 1, 0%16]");
}

// Some with updates, which may be in place.
TEST(Planner, CompletesWhatRandomPlansLeaveOut) {
  constexpr std::optional<Opcode> kFirst[] = {{}, Opcode::dynamic_update, Opcode::scatter};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph =
        prepare(random_graph({.seed = seed, .first = kFirst[seed % std::size(kFirst)]})).value();
    Plan plan = random_plan(graph, target(), seed);
    Rng rng(seed);
    // Schedules are for kernels that the plan forms, offsets for the order that it states.
    plan.schedule.clear();
    plan.offset.clear();
    plan.layout.clear();
    plan.region.clear();
    if (rng.chance(0.5)) plan.order.clear();
    const double dropped = rng.chance(0.5) ? 1 : 0.5;
    // Two that swap their inputs in place have to be one kernel.
    if (plan.order.empty())
      std::erase_if(plan.fuse, [&](const Group& group) {
        if (!rng.chance(dropped)) return false;
        for (const std::string& node : group.nodes) plan.in_place.erase(node);
        return true;
      });
    if (rng.chance(0.5)) plan.view.clear();
    const Result<Plan> completed = complete(graph, plan, target());
    ASSERT_TRUE(completed.ok()) << completed.error().to_string() << print(graph) << print(plan);
    EXPECT_TRUE(check_complete(*completed, graph, target()).ok());
    for (const Group& group : plan.fuse)
      EXPECT_NE(std::ranges::find(completed->fuse, group), completed->fuse.end());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
