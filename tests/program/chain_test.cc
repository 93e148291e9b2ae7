#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/stages.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/chain_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

constexpr std::string_view kAttention = R"(
graph @g(%q: f32[2, 3, 10, 8], %k: f32[2, 3, 12, 8], %v: f32[2, 3, 12, 8], %mask: f32[12])
    -> f32[2, 10, 3, 8] {
  %s = dot %q, %k {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3]}
  %m = broadcast %mask {dims = [2, 3, 10, 12], map = [3]}
  %scores = add %s, %m
  %max = reduce %scores {axes = [3], kind = max}
  %maxb = broadcast %max {dims = [2, 3, 10, 12], map = [0, 1, 2]}
  %d = sub %scores, %maxb
  %e = exp %d
  %sum = reduce %e {axes = [3], kind = sum}
  %sumb = broadcast %sum {dims = [2, 3, 10, 12], map = [0, 1, 2]}
  %p = div %e, %sumb
  %o = dot %p, %v {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2]}
  %y = transpose %o {permutation = [0, 2, 1, 3]}
  return %y
}
)";

// A step of a recurrent cell: the gates are parts of one product.
constexpr std::string_view kCell = R"(
graph @g(%x: f32[6, 20], %h: f32[6, 5], %w: f32[5, 20]) -> (f32[6, 5], f32[6, 5]) {
  %d = dot %h, %w {lhs_contract = [1], rhs_contract = [0]}
  %g = add %d, %x
  %gi = slice %g {start = [0, 0], limit = [6, 5]}
  %go = slice %g {start = [0, 5], limit = [6, 10]}
  %gc = slice %g {start = [0, 10], limit = [6, 15]}
  %gf = slice %g {start = [0, 15], limit = [6, 20]}
  %i = logistic %gi
  %o = logistic %go
  %f = logistic %gf
  %t = tanh %gc
  %a = mul %i, %t
  %b = mul %f, %h
  %c = add %a, %b
  %tc = tanh %c
  %next = mul %o, %tc
  return %next, %c
}
)";

// A depthwise conv with an epilogue, and the 1x1 conv behind it.
constexpr std::string_view kSeparable = R"(
graph @g(%x: f32[2, 8, 6, 5], %w: f32[8, 1, 3, 3], %v: f32[12, 8, 1, 1]) -> f32[2, 12, 6, 5] {
  %d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 8}
  %e = exp %d
  %a = add %e, %d
  %p = conv %a, %v
  %y = neg %p
  return %y
}
)";

// With its image in a layout.
KernelBody separable(std::string_view layout) {
  KernelBody body = body_of_all(parse_graph(kSeparable).value());
  body.inputs[0] = parse_layout(layout).value();
  return body;
}

void check_random(const KernelBody& body, uint64_t count) {
  const DrawnChains drawn = check_random_chains(body, count);
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(drawn.chains, static_cast<int>(count / 2));
  EXPECT_GT(drawn.gemms, drawn.chains / 8);
  EXPECT_GT(drawn.divided, drawn.chains / 4);
  EXPECT_GT(drawn.uneven, drawn.chains / 8);
}

void check_random(std::string_view text, uint64_t count) {
  check_random(body_of_all(parse_graph(text).value()), count);
}
TEST(Chains, RandomChainsOfAnAttentionComputeWhatTheReferenceDoes) {
  check_random(kAttention, tested::share_of(120, 3));
}
TEST(Chains, RandomChainsOfACellComputeWhatTheReferenceDoes) {
  check_random(kCell, tested::share_of(120, 3));
}
TEST(Chains, RandomChainsOfConvsComputeWhatTheReferenceDoes) {
  for (const char* layout : {"[0, 1, 2, 3]", "[0, 2, 3, 1]", "[0, 1/4, 2, 3, 1%4]"}) {
    SCOPED_TRACE(layout);
    check_random(separable(layout), tested::share_of(60, 2));
  }
}

// The image's layout, for what is made of it; blocks of channels only of whole ones.
TEST(Chains, WhatAConvMakesIsKeptAsItsImageLies) {
  const Schedule nest = plain_nest(4);
  const auto kept = [&](std::string_view image) {
    const Schedule chain = {
        .order = {0, 2},
        .own = ChainFields{.block = {{0, 1}, {2, 1}}, .keep = {2}, .stages = {nest, nest}}};
    const std::vector<Stage> stages = stages_of(separable(image), chain).value();
    EXPECT_EQ(stages[1].body.inputs.back(), stages[0].body.outputs[0]);
    return print(stages[0].body.outputs[0]);
  };
  EXPECT_EQ(kept("[0, 1, 2, 3]"), "[0, 1, 2, 3]");
  EXPECT_EQ(kept("[0, 2, 3, 1]"), "[0, 2, 3, 1]");
  EXPECT_EQ(kept("[0, 1/4, 2, 3, 1%4]"), "[0, 1/4, 2, 3, 1%4]");
  EXPECT_EQ(kept("[0, 1, 2/3, 3, 2%3]"), "[0, 1, 3, 2]");
}

TEST(Chains, RowsOfADepthwiseConvStayInScratch) {
  const Schedule nest = plain_nest(4);
  const Schedule chain = {
      .order = {2}, .own = ChainFields{.block = {{2, 4}}, .keep = {2}, .stages = {nest, nest}}};
  const KernelBody body = separable("[0, 1/4, 2, 3, 1%4]");
  const TileProgram program = build_kernel(body, chain, "k").value();
  EXPECT_NE(print(program).find("scratch @kept0: f32[2, 2, 4, 5, 4]"), std::string::npos)
      << print(program);
  Rng rng(1);
  check_kernel(body, chain, random_inputs(body.graph, rng), 16);
}

constexpr std::string_view kProducts = R"(
graph @g(%x: f32[6, 8], %w: f32[8, 4], %v: f32[4, 2]) -> f32[6, 2] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %a = tanh %h
  %y = dot %a, %v {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
)";

ChainFields& own(Schedule& chain) { return chain.get<ChainFields>(); }

// Three rows at a time.
Schedule chain_of_products() {
  const Schedule nest = plain_nest(2);
  return {.order = {0},
          .threads = 1,
          .own = ChainFields{.block = {{0, 3}}, .keep = {1}, .stages = {nest, nest}}};
}

TEST(Chains, AStageReadsWhatTheOneBeforeHasKept) {
  const KernelBody body = body_of_all(parse_graph(kProducts).value());
  ASSERT_TRUE(check_schedule(body, chain_of_products(), Target{}).ok());
  EXPECT_EQ(print(build_kernel(body, chain_of_products(), "k").value()),
            R"(tiles @k(@x0: f32[6, 8], @x1: f32[8, 4], @x2: f32[4, 2]) -> (@y0: f32[6, 2]) {
  scratch @kept0: f32[3, 4]
  threads i0 in 2 {
    %0 = number 0: f32
    for i0_2 in 3 {
      for i1 in 4 {
        %1 = for r0 in 8 carry (%2 = %0 by add) {
          %3 = load @x0[3*i0 + i0_2, r0]
          %4 = load @x1[r0, i1]
          %5 = fma %3, %4, %2
          yield %5
        }
        %6 = tanh %1
        store @kept0[i0_2, i1] = %6
      }
    }
    %7 = number 0: f32
    for i0_2 in 3 {
      for i1 in 2 {
        %8 = for r0 in 4 carry (%9 = %7 by add) {
          %10 = load @kept0[i0_2, r0]
          %11 = load @x2[r0, i1]
          %12 = fma %10, %11, %9
          yield %12
        }
        store @y0[3*i0 + i0_2, i1] = %8
      }
    }
  }
}
)");
}

// Four rows, then the last two: in the panels of the four.
TEST(Chains, TheLastBlockHasTheScratchOfTheOthers) {
  const KernelBody body = body_of_all(parse_graph(kProducts).value());
  Schedule chain = chain_of_products();
  own(chain).block = {{0, 4}};
  own(chain).stages[0] = {
      .order = {0, 1},
      .lanes = {{1, 4}},
      .own = GemmFields{.pack_lhs = Packing::panels, .pack_rhs = Packing::panels}};
  Rng rng(0);
  check_kernel(body, chain, random_inputs(body.graph, rng));
  const TileProgram program = build_kernel(body, chain, "k").value();
  EXPECT_EQ(program.buffers.size(), 7U) << print(program);
}

TEST(Chains, TheSimplestKeepsWhatProductsMakeAndNeed) {
  const KernelBody body = body_of_all(parse_graph(kProducts).value());
  const Schedule simplest = simplest_chain(body).value();
  EXPECT_EQ(simplest.get<ChainFields>().keep, std::vector<int64_t>{1});
  EXPECT_EQ(simplest.order, std::vector<int>{0});
  EXPECT_EQ(simplest_chain(body_of_all(parse_graph(kAttention).value())).value().order,
            (std::vector<int>{0, 1, 2}));
}

// A kept value lies by its block, and not where its words would lie in the whole.
TEST(Chains, StagesTakeNoWords) {
  const KernelBody body = body_of_all(
      parse_graph(
          "graph @g(%x: bf16[64, 32], %v: bf16[32, 16], %w: bf16[16, 16]) { %a = dot %x, %v "
          "{lhs_contract = [1], rhs_contract = [0], flush = true} %b = dot %a, %w "
          "{lhs_contract = [1], rhs_contract = [0], flush = true} return %b }")
          .value());
  Target target;
  target.isa = Isa::avx512;
  target.extensions = {Extension::avx512_bf16};
  Schedule chain = simplest_chain(body).value();
  ASSERT_TRUE(check_schedule(body, chain, target).ok());
  for (Schedule& stage : chain.get<ChainFields>().stages)
    stage.own = GemmFields{.products = Products::pairs};
  const Status status = check_schedule(body, chain, target);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().to_string(), says("a stage of a chain cannot use pairs"));
}

TEST(Chains, SchedulesThatDoNotFitAreRefused) {
  const auto refusal = [](std::string_view text, const auto& change) {
    const KernelBody body = body_of_all(parse_graph(text).value());
    Schedule schedule = chain_of_products();
    change(schedule);
    const Status status = check_schedule(body, schedule, Target{});
    return status.ok() ? "" : status.error().to_string();
  };
  const auto of_products = [&](const auto& change) { return refusal(kProducts, change); };
  EXPECT_EQ(of_products([](Schedule&) {}), "");
  EXPECT_THAT(of_products([](Schedule& s) { own(s).keep.clear(); }), says("chain ... keep"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).stages.pop_back(); }),
              says("1 stages ... 1 values ... kept"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).keep = {7}; }), says("node 7 ... 3"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).keep = {-1}; }), says("node -1 ... 3"));
  EXPECT_THAT(of_products([](Schedule& s) {
                own(s).keep = {1, 0};
                own(s).stages.push_back(own(s).stages[0]);
              }),
              says("kept ... order"));
  EXPECT_THAT(of_products([](Schedule& s) { s.lanes = {{0, 2}}; }),
              says("chain ... tiles ... stages"));
  EXPECT_EQ(of_products([](Schedule& s) { s.threads = 2; }), "error: threads divide 2 of 1 loops");
  EXPECT_THAT(of_products([](Schedule& s) { s.order = {0, 0}; }),
              says("order ... dim 0 ... twice"));
  EXPECT_THAT(of_products([](Schedule& s) { s.order = {2}; }), says("blocks ... dim 2 ... 2"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).block = {{1, 1}}; }),
              says("block ... dim 1 ... order"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).block.clear(); }),
              says("order ... 1 dims ... blocks of 0"));
  EXPECT_EQ(of_products([](Schedule& s) { own(s).block[0].count = 0; }),
            "error: a block of 0 points");
  EXPECT_THAT(of_products([](Schedule& s) { own(s).stages[0].threads = 1; }),
              says("stage ... one thread ... stage 0"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).stages[1] = {}; }),
              says("nest or a gemm ... stage 1"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).stages[1] = s; }),
              says("nest or a gemm ... stage 1"));
  EXPECT_THAT(of_products([](Schedule& s) { own(s).stages[1].order = {0}; }),
              says("order ... 1 dims ... 2 ... stage 1"));
  EXPECT_THAT(of_products([](Schedule& s) {
                own(s).keep.assign(64, 0);
                own(s).stages.assign(65, own(s).stages[0]);
              }),
              says("65 stages ... 64"));
  // Each column would have a block of its own, for which all of the first product is done again.
  EXPECT_THAT(refusal(R"(graph @g(%x: f32[6, 8], %w: f32[8, 4], %v: f32[4, 20]) -> f32[6, 20] {
    %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
    %a = tanh %h
    %y = dot %a, %v {lhs_contract = [1], rhs_contract = [0]}
    return %y
  })",
                      [](Schedule& s) { s.order = {1}, own(s).block = {{1, 1}}; }),
              says("20 times ... 16 ... stage 0"));
  // Rows come in the opposite order.
  EXPECT_THAT(refusal(R"(graph @g(%x: f32[6, 4]) -> f32[6, 4] {
    %a = tanh %x
    %y = reverse %a {axes = [0]}
    return %y
  })",
                      [](Schedule& s) { own(s).keep = {0}; }),
              says("kept ... blocks ... dim 0"));
  EXPECT_THAT(refusal(R"(graph @g(%x: f32[N, 4]) -> f32[N, 4] where N in 1..64 {
    %a = tanh %x
    %y = exp %a
    return %y
  })",
                      [](Schedule& s) { own(s).keep = {0}; }),
              says("chain ... sizes ... f32[N, 4]"));
  EXPECT_THAT(refusal(R"(graph @g(%x: f32[1024, 1024]) -> f32[1024, 1024] {
    %a = tanh %x
    %y = exp %a
    return %y
  })",
                      [](Schedule& s) { own(s).keep = {0}, own(s).block = {{0, 1024}}; }),
              says("8.39e+06 bytes ... cache"));
  KernelBody donated = body_of_all(parse_graph(R"(graph @g(%x: f32[6, 4]) -> f32[6, 4] {
    %a = tanh %x
    %y = exp %a
    return %y
  })")
                                       .value());
  Schedule schedule = chain_of_products();
  own(schedule).keep = {0};
  EXPECT_TRUE(check_schedule(donated, schedule, Target{}).ok());
  donated.graph.add_donation(0, 0);
  EXPECT_THAT(check_schedule(donated, schedule, Target{}).error().to_string(),
              says("chain ... result ... reads"));
}

}  // namespace
}  // namespace hone::HONE_FILE
