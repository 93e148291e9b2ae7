#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "tests/base/says_testing.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

struct Seen {
  std::map<size_t, int> group_sizes;
  std::set<Opcode> fused;
  int kernels = 0;
  size_t donations = 0;
};

void check_random(uint64_t first, uint64_t count, Seen& seen) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool continuous = seed % 2 == 0;
    const Specials specials = specials_of(seed);
    const Graph graph = random_graph({.seed = seed / 2,
                                      .max_steps = 12,
                                      .max_elements = 64,
                                      .continuous = continuous,
                                      .specials = specials});
    const Users users(graph);
    const std::vector<Tensor> values =
        all_values(graph, random_graph_inputs(graph, seed, specials));
    for (int round = 0; round < 4; ++round) {
      const std::vector<NodeId> nodes = random_group(graph, users, rng);
      if (nodes.empty()) continue;
      std::vector<Layout> layouts;
      for (uint32_t v = 0; !specials.any() && v < graph.value_count(); ++v)
        layouts.push_back(random_layout(graph.type(ValueId{v}), rng));
      KernelBody body = body_of(graph, users, nodes, layouts);
      donate_some(body, rng);
      if (nodes.size() > 1 && !continuous && sums_reals(body.graph)) continue;
      std::vector<Tensor> inputs;
      for (ValueId input : ports_of(graph, users, nodes).inputs)
        inputs.push_back(values[input.index]);
      const Schedule schedule = random_schedule(body, Target{}, rng);
      const Status legal = check_schedule(body, schedule, Target{});
      ASSERT_TRUE(legal.ok()) << legal.error().to_string();
      SCOPED_TRACE(print(body.graph));
      if (specials.any())
        check_on_specials(body, schedule, inputs);
      else
        check_kernel(body, schedule, inputs, nodes.size() == 1 ? 1 : 16);
      if (testing::Test::HasFailure()) return;
      ++seen.kernels;
      seen.donations += body.graph.donations().size();
      ++seen.group_sizes[nodes.size()];
      if (nodes.size() > 1)
        for (NodeId node : nodes) seen.fused.insert(graph.opcode(node));
    }
  }
}

TEST(Nests, FusedGroupsOfRandomGraphsComputeWhatTheReferenceDoes) {
  Seen seen;
  check_random(0, 4000, seen);
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (is_fusible(opcode)) EXPECT_TRUE(seen.fused.contains(opcode)) << name(opcode);
  }
  EXPECT_GT(seen.donations, 100u);
  for (size_t nodes = 1; nodes <= 6; ++nodes) EXPECT_GT(seen.group_sizes[nodes], 0) << nodes;
}

TEST(Nests, DISABLED_SweepRandomGroups) {
  Seen seen;
  check_random(1'000'000, 20'000, seen);
}

KernelBody body_of_text(std::string_view text) { return body_of_all(parse_graph(text).value()); }

std::string nest_text(const KernelBody& body, const Schedule& schedule) {
  const Status legal = check_schedule(body, schedule, Target{});
  EXPECT_TRUE(legal.ok()) << legal.error().to_string();
  const TileProgram program = build_kernel(body, schedule, "k").value();
  const Status status = verify(program);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return print(program);
}

TEST(Nests, ARegisterTileLoadsEachOperandOnce) {
  KernelBody body = body_of_text(R"(
graph @g(%x: f32[28, 100], %w: f32[100, 64]) -> f32[28, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = neg %h
  return %y
}
)");
  body.inputs[1] = parse_layout("[1/32, 0, 1%32]").value();
  EXPECT_EQ(nest_text(body, {.order = {1, 0},
                             .threads = 1,
                             .lanes = {{1, 32}},
                             .unroll = {{0, 14}},
                             .own = NestFields()}),
            R"(tiles @k(@x0: f32[28, 100], @x1: f32[2, 100, 32]) -> (@y0: f32[28, 64]) {
  threads i1 in 2 {
    %0 = number 0: f32
    for i0 in 2 {
      unroll i0_2 in 14 {
        lanes i1_2 in 32 {
          %1 = for r0 in 100 carry (%2 = %0 by add) {
            %3 = load @x0[14*i0 + i0_2, r0]
            %4 = load @x1[i1, r0, i1_2]
            %5 = fma %3, %4, %2
            yield %5
          }
          %6 = neg %1
          store @y0[14*i0 + i0_2, 32*i1 + i1_2] = %6
        }
      }
    }
  }
}
)");
}

constexpr std::string_view kRows = R"(
graph @rows(%x: f32[N, 24]) -> f32[N, 24] where N in 1..64 {
  %m = reduce %x {kind = sum, axes = [1]}
  %mb = broadcast %m {dims = [N, 24], map = [0]}
  %y = div %x, %mb
  return %y
}
)";

// Once per row, in the lanes of the row; sizes may be symbols.
TEST(Nests, ReductionsOfARowRunInItsLanes) {
  const KernelBody body = body_of_text(kRows);
  Schedule schedule = {
      .order = {0, 1}, .threads = 1, .lanes = {{1, 8}}, .own = NestFields{.row = 1}};
  EXPECT_EQ(nest_text(body, schedule),
            R"(tiles @k(@x0: f32[N, 24]) -> (@y0: f32[N, 24]) where N in 1..64 {
  threads i0 in N {
    %0 = number 0: f32
    %1 = lanes r0 in 8 carry (%2 = %0 by add) {
      %3 = for r0_2 in 3 carry (%4 = %2 by add) {
        %5 = load @x0[i0, 8*r0_2 + r0]
        %6 = add %4, %5
        yield %6
      }
      yield %3
    }
    for i1 in 3 {
      lanes i1_2 in 8 {
        %7 = load @x0[i0, 8*i1 + i1_2]
        %8 = div %7, %1
        store @y0[i0, 8*i1 + i1_2] = %8
      }
    }
  }
}
)");
  // Tiles of a dim of unknown size have guards.
  schedule.lanes = {{0, 8}};
  EXPECT_NE(nest_text(body, schedule).find("if 0 <= 8*i0 + i0_2 < N"), std::string::npos);
}

constexpr std::string_view kParts = R"(
graph @parts(%a: f32[2, 32, 5], %b: f32[2, 48, 5]) -> f32[2, 80, 5] {
  %c = concat %a, %b {axis = 1}
  %y = neg %c
  return %y
}
)";

KernelBody parts_in_blocks() {
  KernelBody body = body_of_text(kParts);
  for (std::vector<Layout>* layouts : {&body.inputs, &body.outputs})
    for (Layout& layout : *layouts) layout = parse_layout("[0, 1/16, 2, 1%16]").value();
  return body;
}

// Each operand has loops of its own, which decide nothing.
TEST(Nests, LoopsEndWhereOperandsMeet) {
  EXPECT_EQ(
      nest_text(parts_in_blocks(),
                {.order = {0, 1, 2}, .lanes = {{1, 16}}, .unroll = {{2, 4}}, .own = NestFields()}),
      R"(tiles @k(@x0: f32[2, 2, 5, 16], @x1: f32[2, 3, 5, 16]) -> (@y0: f32[2, 5, 5, 16]) {
  for once in 1 {
    %0 = number 0: f32
    for i0 in 2 {
      for i1 in 2 {
        unroll i2 in 4 {
          lanes i1_2 in 16 {
            %1 = load @x0[i0, i1, i2, i1_2]
            %2 = neg %1
            store @y0[i0, i1, i2, i1_2] = %2
          }
        }
        lanes i1_2 in 16 {
          %3 = load @x0[i0, i1, 4, i1_2]
          %4 = neg %3
          store @y0[i0, i1, 4, i1_2] = %4
        }
      }
      for i1 in 3 {
        unroll i2 in 4 {
          lanes i1_2 in 16 {
            %5 = load @x1[i0, i1, i2, i1_2]
            %6 = neg %5
            store @y0[i0, i1 + 2, i2, i1_2] = %6
          }
        }
        lanes i1_2 in 16 {
          %7 = load @x1[i0, i1, 4, i1_2]
          %8 = neg %7
          store @y0[i0, i1 + 2, 4, i1_2] = %8
        }
      }
    }
  }
}
)");
}

// Threads would wait for each other after each part. All lanes are in one block, so one comparison
// decides for them.
TEST(Nests, DividedLoopsDecideForWholeBlocks) {
  const std::string text =
      nest_text(parts_in_blocks(),
                {.order = {1, 0, 2}, .threads = 1, .lanes = {{1, 16}}, .own = NestFields()});
  EXPECT_NE(text.find("threads i1 in 5"), std::string::npos) << text;
  EXPECT_NE(text.find("load @x0[i0, i1, i2, i1_2] if 0 <= i1 < 2 else"), std::string::npos) << text;
}

TEST(Nests, LanesPastACutKeepTheirGuards) {
  const KernelBody body = body_of_text(kParts);
  const std::string text =
      nest_text(body, {.order = {0, 2, 1}, .lanes = {{1, 64}}, .own = NestFields()});
  EXPECT_NE(text.find("if 0 <= i1 < 32"), std::string::npos) << text;
}

TEST(Nests, CutsAreWherePartsOfResultsBegin) {
  const auto cuts = [](std::string_view text) {
    std::string found;
    for (const KernelFacts::Loop& loop : KernelFacts(body_of_text(text)).loops)
      found += fmt::format("{{{}}}", fmt::join(loop.cuts, ", "));
    return found;
  };
  EXPECT_EQ(cuts(kParts), "{}{32}{}");
  EXPECT_EQ(cuts(R"(
graph @padded(%a: f32[4, 6], %p: f32[]) -> f32[8, 7] {
  %y = pad %a, %p {low = [1, 0], high = [3, 1]}
  return %y
}
)"),
            "{1, 5}{6}");
  // Channels that are shuffled: which half they are from is a dim.
  EXPECT_EQ(cuts(R"(
graph @shuffled(%a: f32[8, 5], %b: f32[8, 5]) -> f32[8, 2, 5] {
  %c = concat %a, %b {axis = 0}
  %r = reshape %c {dims = [2, 8, 5]}
  %y = transpose %r {permutation = [1, 0, 2]}
  return %y
}
)"),
            "{}{1}{}");
  // Every other point is another operand's.
  EXPECT_EQ(cuts(R"(
graph @woven(%a: f32[8, 1], %b: f32[8, 1]) -> f32[16] {
  %c = concat %a, %b {axis = 1}
  %y = reshape %c {dims = [16]}
  return %y
}
)"),
            "{}");
  // A part of a part counts once.
  const KernelFacts nested(body_of_text(R"(
graph @nested(%a: f32[4], %b: f32[12], %c: f32[16]) -> f32[32] {
  %x = concat %a, %b {axis = 0}
  %y = concat %x, %c {axis = 0}
  return %y
}
)"));
  EXPECT_EQ(nested.loops[0].cuts, (std::vector<int64_t>{4, 16}));
  std::vector<double> shares;
  for (const KernelFacts::Array& array : nested.arrays)
    if (!array.is_store) shares.push_back(array.share);
  std::ranges::sort(shares);
  EXPECT_EQ(shares, (std::vector<double>{0.125, 0.375, 0.5}));
  // No point at all.
  EXPECT_EQ(cuts(R"(
graph @empty(%a: f32[2], %p: f32[]) -> f32[0] {
  %y = pad %a, %p {low = [-1], high = [-1]}
  return %y
}
)"),
            "{}");
  EXPECT_EQ(cuts(R"(
graph @open(%a: f32[N, 4], %b: f32[N, 4]) -> f32[N, 8] where N in 1..64 {
  %y = concat %a, %b {axis = 1}
  return %y
}
)"),
            "{}{}");
}

TEST(Nests, SchedulesThatDoNotFitAreRefused) {
  const KernelBody body = body_of_text(kRows);
  const Schedule good = {.order = {0, 1}, .own = NestFields()};
  auto refusal = [&](const auto& change) {
    Schedule schedule = good;
    change(schedule);
    const Status status = check_schedule(body, schedule, Target{});
    return status.ok() ? "" : status.error().to_string();
  };
  EXPECT_EQ(refusal([](Schedule&) {}), "");
  EXPECT_THAT(refusal([](Schedule& s) { s.order = {0}; }), says("order ... 1 dims ... 2"));
  EXPECT_THAT(refusal([](Schedule& s) { s.order = {0, 0}; }),
              says("order ... permutation ... 2 dims"));
  EXPECT_EQ(refusal([](Schedule& s) { s.threads = 3; }), "error: threads divide 3 of 2 loops");
  EXPECT_THAT(refusal([](Schedule& s) { s.lanes = {{1, 12}}; }),
              says("12 lanes ... power of 2 ... 64"));
  EXPECT_THAT(refusal([](Schedule& s) { s.lanes = {{3, 8}}; }), says("lanes ... dim 3 of 3"));
  EXPECT_EQ(refusal([](Schedule& s) { s.lanes = {{2, 8}}; }), "");
  EXPECT_THAT(refusal([](Schedule& s) { s.lanes = {{0, 8}, {1, 8}}; }), says("lanes ... 2 dims"));
  EXPECT_EQ(refusal([](Schedule& s) { s.unroll = {{0, 2}, {0, 4}}; }),
            "error: dim 0 is unrolled twice");
  EXPECT_THAT(refusal([](Schedule& s) { s.unroll = {{0, 16}, {1, 8}}; }),
              says("128 points ... unrolled ... 64"));
  EXPECT_THAT(refusal([](Schedule& s) { s.own = NestFields{.row = 1}, s.threads = 2; }),
              says("threads ... 2 loops ... 1"));
  EXPECT_THAT(refusal([](Schedule& s) { s = {}; }), says("generic ... one op ... 3"));
}

}  // namespace
}  // namespace hone::HONE_FILE
