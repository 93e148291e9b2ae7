#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Not;

struct Seen {
  int gemms = 0, panels = 0, windows = 0, blocked_sums = 0, lanes = 0, donations = 0;
};

void check_random(uint64_t first, uint64_t count, Seen& seen) {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Graph graph = RandomGemm(rng).graph();
    KernelBody body = body_of_all(graph);
    ASSERT_TRUE(check_group(graph, op_nodes(graph)).ok());
    const Specials specials = specials_of(seed);
    draw_layouts(body, specials, rng);
    donate_some(body, rng);
    Schedule schedule = random_schedule(body, target, rng);
    for (int i = 0; i < 60 && schedule.algorithm() != Algorithm::gemm; ++i)
      schedule = random_schedule(body, target, rng);
    SCOPED_TRACE(print(body.graph));
    check_drawn_kernel(body, schedule, specials, rng);
    if (testing::Test::HasFailure()) return;
    if (schedule.algorithm() != Algorithm::gemm) continue;
    ++seen.gemms;
    seen.donations += body.graph.donations().empty() ? 0 : 1;
    const GemmFields& own = schedule.get<GemmFields>();
    for (Packing packing : {own.pack_lhs, own.pack_rhs}) {
      seen.panels += packing == Packing::panels ? 1 : 0;
      seen.windows += packing == Packing::window ? 1 : 0;
    }
    seen.lanes += schedule.lanes.empty() ? 0 : 1;
    for (const Tile& block : own.block)
      seen.blocked_sums += block.dim >= space_of(body).parallel ? 1 : 0;
  }
}

TEST(Gemms, RandomContractionsComputeWhatTheReferenceDoes) {
  Seen seen;
  check_random(0, 400, seen);
  EXPECT_GT(seen.gemms, 250);
  EXPECT_GT(seen.panels, 100);
  EXPECT_GT(seen.windows, 100);
  EXPECT_GT(seen.blocked_sums, 100);
  EXPECT_GT(seen.lanes, 100);
  EXPECT_GT(seen.donations, 10);
}

// A conv whose groups of features have channels of their own.
Graph random_groups(Rng& rng) {
  Builder b;
  const int64_t groups = rng.between(2, 5), in = rng.between(1, 4), out = rng.between(1, 8);
  const Dims x = {rng.between(1, 2), in * groups, rng.between(3, 7), rng.between(3, 9)};
  const Dims w = {out * groups, in, rng.between(1, 3), rng.between(1, 3)};
  const Value y =
      b.op(Opcode::conv, {b.parameter("x", DType::f32, x), b.parameter("w", DType::f32, w)},
           {{"stride", Ints{rng.between(1, 2), 1}},
            {"pad_low", Ints{1, rng.between(0, 2)}},
            {"pad_high", Ints{rng.between(0, 1), 1}},
            {"groups", groups}});
  return b.finish({y}).value();
}

// Blocks of features in whole groups, or in parts of one.
TEST(Gemms, WindowsOfGroupsComputeWhatTheReferenceDoes) {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  int windows = 0, several_groups = 0, parts = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Graph graph = random_groups(rng);
    KernelBody body = body_of_all(graph);
    const Specials specials = specials_of(seed);
    draw_layouts(body, specials, rng);
    Schedule schedule = random_schedule(body, target, rng);
    GemmFields* own = schedule.if_is<GemmFields>();
    if (own == nullptr) continue;
    own->pack_lhs = Packing::window;
    if (!check_schedule(body, schedule, target).ok()) continue;
    ++windows;
    const KernelSpace space = space_of(body);
    const int64_t block = cache_block(schedule, space, 1);
    const int64_t of_group =
        space.dims[1].extent.value() / graph.op(op_nodes(graph)[0]).integer("groups");
    several_groups += block > of_group ? 1 : 0;
    parts += block < of_group ? 1 : 0;
    check_drawn_kernel(body, schedule, specials, rng);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(windows, 60);
  EXPECT_GT(several_groups, 15);
  EXPECT_GT(parts, 15);
}

std::string gemm_text(const KernelBody& body, const Schedule& schedule) {
  const Status legal = check_schedule(body, schedule, Target{});
  EXPECT_TRUE(legal.ok()) << legal.error().to_string();
  const TileProgram program = build_kernel(body, schedule, "k").value();
  const Status status = verify(program);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return print(program);
}

constexpr std::string_view kProduct = R"(
graph @g(%x: f32[56, 64], %w: f32[64, 64], %b: f32[64]) -> f32[56, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %bb = broadcast %b {dims = [56, 64], map = [1]}
  %y = add %h, %bb
  return %y
}
)";

constexpr std::string_view kOpen[] = {
    R"(graph @g(%x: f32[N, 5], %w: f32[5, 6]) -> f32[N, 6] where N in 0..40 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})",
    R"(graph @g(%x: f32[5, 6], %w: f32[N, 5]) -> f32[6, N] where N in 1..40 {
  %y = dot %x, %w {lhs_contract = [0], rhs_contract = [1]}
  return %y
})",
    R"(graph @g(%x: f32[N, 3, 4, 5], %w: f32[4, 3, 3, 3]) -> f32[N, 4, 4, 5] where N in 1..40 {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})",
    R"(graph @g(%x: f32[2, 3, N, 5], %w: f32[4, 3, 3, 3]) -> f32[2, 4, N, 5] where N in 1..40 {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  return %y
})",
    R"(graph @g(%x: f32[2, 4, 4, 5], %w: f32[2*N, 2, 3, 3]) -> f32[2, 2*N, 4, 5] where N in 1..40 {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], groups = 2}
  return %y
})",
    R"(graph @g(%x: f32[2*N, 5], %w: f32[5, 6]) -> f32[2, N, 6] where N in 1..40 {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = reshape %h {dims = [2, N, 6]}
  return %y
})"};

// Whole tiles, tiles of four, and points.
TEST(Gemms, OpenSizesComputeWhatTheReferenceDoes) {
  int gemms = 0, packed = 0, tiles = 0;
  for (std::string_view text : kOpen) {
    const KernelBody body = body_of_all(parse_graph(text).value());
    const int open =
        static_cast<int>(std::ranges::find_if(body.graph.output_types()[0].dims(),
                                              [](const Dim& dim) { return !dim.is_static(); }) -
                         body.graph.output_types()[0].dims().begin());
    Rng rng(1);
    for (uint64_t i = 0; i < tested::share_of(200, 2); ++i) {
      const Schedule schedule = random_schedule(body, Target{}, rng);
      const GemmFields* own = schedule.if_is<GemmFields>();
      if (own == nullptr) continue;
      ++gemms;
      packed += own->pack_lhs != Packing::no || own->pack_rhs != Packing::no ? 1 : 0;
      tiles += tile_of(schedule.unroll, open) > 4 ? 1 : 0;
      const Bindings sizes = {{"N", rng.between(body.graph.symbols()[0].min(), 40)}};
      SCOPED_TRACE(sizes.at("N").to_string());
      const Graph graph = specialize(body.graph, sizes).value();
      check_open_kernel(body, schedule, sizes, random_inputs(graph, rng), 16);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(gemms, 60);
  EXPECT_GT(packed, 30);
  EXPECT_GT(tiles, 5);
}

// Few points do not wait for panels: what whole tiles read is packed if there are two.
TEST(Gemms, TheRestOfAnOpenSizeReadsOperandsWhereTheyLie) {
  const KernelBody body = body_of_all(parse_graph(kOpen[0]).value());
  const Schedule schedule = {
      .order = {1, 0}, .unroll = {{0, 6}}, .own = GemmFields{.pack_rhs = Packing::panels}};
  const std::string text = print(build_kernel(body, schedule, "k").value());
  EXPECT_THAT(text, HasSubstr("for once_2 in 1 from 0 to 2*(N/12) {"));
  EXPECT_THAT(text, HasSubstr("for i0 in 2*(N/12) {"));
  EXPECT_THAT(text, HasSubstr("for i0 in N/6 - 2*(N/12) {"));
  const auto count = [&](std::string_view what) {
    int all = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++all;
    return all;
  };
  EXPECT_EQ(count("load @rhs["), 1);  // by whole tiles
  EXPECT_EQ(count("load @x1["), 4);   // to be packed, by a last tile, tiles of four, and points
}

TEST(Gemms, ATileReadsPanelsAndEndsWithTheEpilogue) {
  KernelBody body = body_of_all(parse_graph(kProduct).value());
  body.inputs[1] = parse_layout("[1/32, 0, 1%32]").value();
  EXPECT_EQ(gemm_text(body, {.order = {0, 1},
                             .threads = 1,
                             .lanes = {{1, 32}},
                             .unroll = {{0, 14}},
                             .own = GemmFields{.block = {{0, 28}, {1, 64}},
                                               .pack_lhs = Packing::panels}}),
            R"(tiles @k(@x0: f32[56, 64], @x1: f32[2, 64, 32], @x2: f32[64]) -> (@y0: f32[56, 64]) {
  scratch @lhs: f32[2, 64, 14]
  threads i0 in 2 {
    %0 = number 0: f32
    for i0_2 in 2 {
      for r0 in 64 {
        unroll i0_3 in 14 {
          %1 = load @x0[28*i0 + 14*i0_2 + i0_3, r0]
          store @lhs[i0_2, r0, i0_3] = %1
        }
      }
    }
    for i1 in 2 {
      for i0_2 in 2 {
        unroll i0_3 in 14 {
          lanes i1_2 in 32 {
            %2 = for r0 in 64 carry (%3 = %0 by add) {
              %4 = load @lhs[i0_2, r0, i0_3]
              %5 = load @x1[i1, r0, i1_2]
              %6 = fma %4, %5, %3
              yield %6
            }
            %7 = load @x2[32*i1 + i1_2]
            %8 = add %2, %7
            store @y0[28*i0 + 14*i0_2 + i0_3, 32*i1 + i1_2] = %8
          }
        }
      }
    }
  }
}
)");
}

TEST(Gemms, WindowsSkipTheTripsThatMeetPadding) {
  const auto text = [](std::string_view attributes, std::string_view weights, Schedule schedule) {
    const KernelBody body =
        body_of_all(parse_graph(fmt::format("graph @g(%x: f32[1, 8, 9, 9], %w: f32[16, 8, {}]) {{\n"
                                            "  %y = conv %x, %w {{{}}}\n  return %y\n}}",
                                            weights, attributes))
                        .value());
    schedule.order = {0, 1, 2, 3};
    schedule.lanes = {{1, 16}};
    return gemm_text(body, schedule);
  };
  constexpr std::string_view kTall = "pad_low = [2, 0], pad_high = [2, 0]";
  constexpr std::string_view kStrided =
      "pad_low = [1, 0], pad_high = [1, 0], stride = [2, 1], kernel_dilation = [1, 1]";
  constexpr std::string_view kDilated =
      "pad_low = [2, 0], pad_high = [2, 0], kernel_dilation = [2, 1]";
  constexpr std::string_view kSquare = "pad_low = [1, 1], pad_high = [1, 1]";
  const Schedule row = {.unroll = {{3, 9}}, .own = GemmFields{}};
  const Schedule rows = {.unroll = {{2, 3}}, .own = GemmFields{}};
  const Schedule copied = {.unroll = {{3, 9}}, .own = GemmFields{.pack_lhs = Packing::window}};

  // One row of windows: from the first row of the image to the last one, and no guard.
  const std::string tall = text(kTall, "5, 1", row);
  EXPECT_THAT(tall, HasSubstr("for r1 in 5 from -i2 + 2 to -i2 + 11 carry"));
  EXPECT_THAT(tall, Not(HasSubstr(" if ")));
  EXPECT_THAT(text(kStrided, "3, 1", row), HasSubstr("for r1 in 3 from -2*i2 + 1 to -2*i2 + 10"));
  // Columns side by side differ in what they skip, so they ask; of a copy nobody asks.
  const std::string square = text(kSquare, "3, 3", row);
  EXPECT_THAT(square, HasSubstr("for r1 in 3 from -i2 + 1 to -i2 + 10 carry"));
  EXPECT_THAT(square, HasSubstr("else"));
  EXPECT_THAT(text(kSquare, "3, 3", copied), HasSubstr("for r1 in 3 from -i2 + 1 to -i2 + 10"));
  // Rows side by side differ, too; steps of two end between rows; nothing is skipped of an image
  // without padding.
  EXPECT_THAT(text(kTall, "5, 1", rows), Not(HasSubstr(" from ")));
  EXPECT_THAT(text(kDilated, "3, 1", row), Not(HasSubstr(" from ")));
  EXPECT_THAT(text("", "3, 3", row), Not(HasSubstr(" from ")));
}

std::vector<Tile>& block(Schedule& schedule) { return schedule.get<GemmFields>().block; }

TEST(Gemms, SchedulesThatDoNotFitAreRefused) {
  auto refusal = [](std::string_view text, const auto& change) {
    const KernelBody body = body_of_all(parse_graph(text).value());
    Schedule schedule = {.own = GemmFields()};
    for (int d = 0; d < space_of(body).parallel; ++d) schedule.order.push_back(d);
    change(schedule);
    const Status status = check_schedule(body, schedule, Target{});
    return status.ok() ? "" : status.error().to_string();
  };
  auto of_product = [&](const auto& change) { return refusal(kProduct, change); };
  EXPECT_EQ(of_product([](Schedule&) {}), "");
  EXPECT_THAT(of_product([](Schedule& s) { s.lanes = {{2, 8}}; }), says("register tile ... dim 2"));
  EXPECT_THAT(of_product([](Schedule& s) { s.unroll = {{0, 4}}, block(s) = {{0, 6}}; }),
              says("block of 6 ... tiles of 4"));
  EXPECT_EQ(of_product([](Schedule& s) { block(s) = {{0, 8}, {0, 8}}; }),
            "error: dim 0 has two blocks");
  EXPECT_THAT(refusal(R"(
graph @g(%x: f32[512, 4096], %w: f32[4096, 8]) -> f32[512, 8] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
)",
                      [](Schedule& s) {
                        s.own = GemmFields{.block = {{0, 512}}, .pack_lhs = Packing::panels};
                      }),
              says("1.68e+07 bytes ... cache"));
  EXPECT_THAT(refusal(R"(
graph @g(%x: f32[4, 4], %w: f32[4, 4]) -> f32[4, 4] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %t = transpose %h {permutation = [1, 0]}
  %y = add %h, %t
  return %y
}
)",
                      [](Schedule&) {}),
              says("%h ... two places"));
  EXPECT_THAT(refusal(R"(
graph @g(%x: f32[4, 4], %w: f32[4]) -> f32[3, 4] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = broadcast %h {dims = [3, 4], map = [1]}
  return %y
}
)",
                      [](Schedule&) {}),
              says("dim 0 ... sum"));
  constexpr std::string_view kGroups = R"(
graph @g(%x: f32[1, 8, 5, 5], %w: f32[24, 2, 3, 3]) {
  %y = conv %x, %w {groups = 4}
  return %y
}
)";
  const auto window = [](int64_t features) {
    return [features](Schedule& s) {
      s.own = GemmFields{.block = {{1, features}}, .pack_lhs = Packing::window};
    };
  };
  for (int64_t features : {1, 2, 3, 6, 12, 18, 24})
    EXPECT_EQ(refusal(kGroups, window(features)), "");
  for (int64_t features : {4, 5, 8, 9})
    EXPECT_THAT(refusal(kGroups, window(features)), says("window ... jumps"));
  KernelBody stage = body_of_all(parse_graph(kGroups).value());
  stage.window = {1, 6, 3, 3};
  const Schedule of_stage = {.order = {0, 1, 2, 3}, .own = GemmFields{.pack_lhs = Packing::window}};
  EXPECT_THAT(check_schedule(stage, of_stage, Target{}).error().to_string(),
              says("chain ... window of groups"));
  EXPECT_THAT(refusal(R"(
graph @g(%x: f32[4, N], %w: f32[N, 4]) -> f32[4, 4] where N in 1..9 {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
)",
                      [](Schedule&) {}),
              says("gemm ... reduction ... N"));
  EXPECT_THAT(refusal(kOpen[0], [](Schedule& s) { s.lanes = {{0, 8}}; }),
              says("lanes ... gemm ... dim 0 ... N"));
  EXPECT_THAT(refusal(kOpen[0], [](Schedule& s) { block(s) = {{0, 8}}; }),
              says("block ... dim 0, of N"));
  EXPECT_THAT(
      refusal(kOpen[0], [](Schedule& s) { s.get<GemmFields>().products = Products::quads; }),
      says("products ... quads ... dim 0, of N"));
  EXPECT_EQ(refusal(kOpen[0], [](Schedule& s) { s.unroll = {{0, 8}}; }), "");
  EXPECT_THAT(refusal(R"(
graph @g(%x: f32[3, 0], %w: f32[0, 4]) -> f32[3, 4] {
  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
}
)",
                      [](Schedule&) {}),
              says("gemm ... blocks ... without elements"));
}

TEST(Gemms, DISABLED_SweepRandomContractions) {
  Seen seen;
  check_random(1'000'000, 20'000, seen);
}

}  // namespace
}  // namespace hone::HONE_FILE
