#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/stages.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/chain_testing.h"

// Halos: blocks of a pool need more points of the image than they have.

namespace hone::HONE_FILE {
namespace {

using tested::says;

// A window along a dim of an image.
struct WindowAlong {
  int64_t window = 1, stride = 1, low = 0, high = 0, dilation = 1;
  int64_t points(int64_t of) const {
    return (of + low + high - dilation * (window - 1) - 1) / stride + 1;
  }
};

// A conv with an epilogue and the pool behind it.
struct ConvAndPool {
  std::string kind = "max";
  int64_t images = 2, channels = 4, features = 4;
  std::vector<int64_t> image = {};
  std::vector<WindowAlong> conv = {}, pool = {};  // per dim of the image

  KernelBody body(std::string_view layout = "") const {
    std::vector<int64_t> kept, pooled;
    for (size_t d = 0; d < image.size(); ++d) {
      kept.push_back(conv[d].points(image[d]));
      pooled.push_back(pool[d].points(kept[d]));
    }
    const auto list = [](const std::vector<WindowAlong>& all, int64_t WindowAlong::* field) {
      std::string text;
      for (const WindowAlong& along : all) text += fmt::format(", {}", along.*field);
      return text;
    };
    const auto of_conv = [&](int64_t WindowAlong::* field) { return list(conv, field).substr(2); };
    const std::string text = fmt::format(
        "graph @g(%x: f32[{0}, {1}, {3}], %w: f32[{2}, {1}{4}], %b: f32[{2}]) -> f32[{0}, {2}, "
        "{6}] {{\n"
        "  %d = conv %x, %w {{stride = [{7}], pad_low = [{8}], pad_high = [{9}]}}\n"
        "  %c = broadcast %b {{dims = [{0}, {2}, {5}], map = [1]}}\n"
        "  %a = add %d, %c\n"
        "  %t = max %a, 0\n"
        "  %p = window_reduce %t {{kind = {10}, window = [1, 1{11}], stride = [1, 1{12}],\n"
        "       pad_low = [0, 0{13}], pad_high = [0, 0{14}], window_dilation = [1, 1{15}]}}\n"
        "  %y = neg %p\n"
        "  return %y\n}}\n",
        images, channels, features, fmt::join(image, ", "), list(conv, &WindowAlong::window),
        fmt::join(kept, ", "), fmt::join(pooled, ", "), of_conv(&WindowAlong::stride),
        of_conv(&WindowAlong::low), of_conv(&WindowAlong::high), kind,
        list(pool, &WindowAlong::window), list(pool, &WindowAlong::stride),
        list(pool, &WindowAlong::low), list(pool, &WindowAlong::high),
        list(pool, &WindowAlong::dilation));
    KernelBody body = body_of_all(parse_graph(text).value());
    if (!layout.empty()) body.inputs[0] = parse_layout(layout).value();
    return body;
  }
};

// A body of two dims that are alike, but for their extents.
ConvAndPool of_images(int64_t rows, WindowAlong pool, WindowAlong conv = {3, 1, 1, 1},
                      int64_t columns = 6) {
  return {.image = {rows, columns}, .conv = {conv, conv}, .pool = {pool, pool}};
}

constexpr WindowAlong kPools[] = {
    {.window = 2, .stride = 2},
    {.window = 3, .stride = 2},
    {.window = 3, .stride = 2, .low = 1, .high = 1},
    {.window = 3, .stride = 1, .low = 1, .high = 1},
    {.window = 1, .stride = 2},
    {.window = 2, .stride = 1, .dilation = 3},
};

// Rows of the result, `count` at a time.
Schedule rows(const KernelBody& body, int64_t count) {
  const int rank = body.graph.type(body.graph.outputs()[0]).rank();
  const Schedule nest = plain_nest(rank);
  return {.order = {2},
          .own = ChainFields{.block = {{2, count}},
                             .keep = simplest_chain(body).value().get<ChainFields>().keep,
                             .stages = {nest, nest}}};
}

TEST(Halos, BlocksOfAllSizesComputeWhatTheReferenceDoes) {
  for (const WindowAlong& pool : kPools) {
    for (const WindowAlong& conv : {WindowAlong{3, 1, 1, 1}, WindowAlong{3, 2}}) {
      const KernelBody body = of_images(17, pool, conv, 9).body();
      int taken = 0;
      for (int64_t count : {1, 2, 3, 4, 5}) {
        SCOPED_TRACE(fmt::format("{}x/{}, {} rows", pool.window, pool.stride, count));
        if (!check_schedule(body, rows(body, count), Target{}).ok()) continue;
        Rng rng(static_cast<uint64_t>(count));
        check_kernel(body, rows(body, count), random_inputs(body.graph, rng), 16);
        if (HasFatalFailure()) return;
        ++taken;
      }
      EXPECT_GT(taken, 1);
    }
  }
}

TEST(Halos, RandomChainsComputeWhatTheReferenceDoes) {
  uint64_t number = 0;
  for (const WindowAlong& pool : kPools) {
    for (const char* layout : {"", "[0, 2, 3, 1]", "[0, 1/4, 2, 3, 1%4]"}) {
      if (!tested::in_share(number++, 6)) continue;
      SCOPED_TRACE(fmt::format("{}x/{} {}", pool.window, pool.stride, layout));
      const DrawnChains drawn = check_random_chains(of_images(11, pool).body(layout), 8);
      if (HasFailure()) return;
      EXPECT_GT(drawn.chains, 3);
    }
  }
}

WindowAlong random_window(Rng& rng, int64_t longest, bool of_pool) {
  WindowAlong along = {.window = rng.between(1, longest),
                       .stride = rng.between(1, of_pool ? 3 : 2)};
  if (of_pool && rng.chance(0.2)) along.dilation = 2;
  along.low = rng.between(0, along.window / 2);
  along.high = rng.between(0, along.window / 2);
  return along;
}

// A body of one to three dims of any extents.
TEST(Halos, RandomPoolsInRandomChainsComputeWhatTheReferenceDoes) {
  int chains = 0, halos = 0;
  for (uint64_t seed = 0; seed < tested::share_of(120, 2); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    ConvAndPool net = {.kind = rng.chance(0.5) ? "max" : "sum",
                       .images = rng.between(1, 2),
                       .channels = rng.between(1, 3),
                       .features = rng.between(1, 5)};
    const int64_t rank = rng.between(1, 3);
    for (int64_t d = 0; d < rank; ++d) {
      net.image.push_back(rng.between(rank == 3 ? 5 : 7, rank == 1 ? 40 : rank == 2 ? 12 : 7));
      net.conv.push_back(random_window(rng, 3, false));
      net.pool.push_back(random_window(rng, 3, true));
      // The image has room for both windows.
      net.image.back() =
          std::max(net.image.back(), 2 * net.pool.back().dilation * net.pool.back().window + 3);
    }
    const KernelBody body = net.body();
    Target target;
    target.caches = {{.bytes = 1 << 20}};
    const std::optional<Schedule> chain = random_chain(body, target, rng);
    if (!chain) continue;
    check_kernel(body, *chain, random_inputs(body.graph, rng), 16);
    if (HasFailure()) return;
    ++chains;
    for (const Stage& stage : stages_of(body, *chain).value())
      halos += std::ranges::any_of(
          stage.along, [](const Along& along) { return along.window > 1 || along.stride > 1; });
  }
  EXPECT_GT(chains, 30);
  EXPECT_GT(halos, 10);
}

TEST(Halos, AStageHasWhatTheWindowsOfABlockNeed) {
  const auto along = [](const WindowAlong& pool, int64_t count) {
    const KernelBody body = of_images(16, pool).body();
    const Result<std::vector<Stage>> stages = stages_of(body, rows(body, count));
    if (!stages.ok()) return stages.error().to_string();
    const Along& rows = stages->at(0).along[2];
    return fmt::format("{} from {}*i{} + {}", stages->at(0).body.window[2], rows.stride, rows.dim,
                       rows.first);
  };
  EXPECT_EQ(along(kPools[0], 1), "2 from 2*i2 + 0");
  EXPECT_EQ(along(kPools[0], 3), "6 from 2*i2 + 0");
  EXPECT_EQ(along(kPools[1], 1), "3 from 2*i2 + 0");
  EXPECT_EQ(along(kPools[1], 3), "7 from 2*i2 + 0");
  EXPECT_EQ(along(kPools[2], 3), "7 from 2*i2 + -1");
  EXPECT_EQ(along(kPools[3], 3), "5 from 1*i2 + -1");
  EXPECT_EQ(along(kPools[4], 3), "5 from 2*i2 + 0");
  EXPECT_EQ(along(kPools[5], 3), "6 from 1*i2 + 0");
  // With its padding, all of it is more than there is.
  EXPECT_THAT(along(kPools[3], 16), says("block ... 18 points ... dim 2 ... %t ... 16"));
}

// Not as the image, whose few channels lie apart.
TEST(Halos, WhatAPoolReadsLiesAsTheResults) {
  KernelBody body = of_images(16, kPools[1]).body("[0, 2, 3, 1]");
  body.outputs[0] = parse_layout("[0, 1/4, 2, 3, 1%4]").value();
  EXPECT_EQ(stages_of(body, rows(body, 2)).value()[0].body.outputs[0], body.outputs[0]);
  Rng rng(1);
  check_kernel(body, rows(body, 2), random_inputs(body.graph, rng), 16);
}

// The points that a conv needs of the one before it, for the pool behind both.
TEST(Halos, GrowFromStageToStage) {
  const KernelBody body = body_of_all(parse_graph(R"(
graph @g(%x: f32[1, 3, 24, 6], %w: f32[4, 3, 3, 3], %v: f32[4, 4, 3, 3]) -> f32[1, 4, 12, 3] {
  %d = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
  %e = conv %d, %v {pad_low = [1, 1], pad_high = [1, 1]}
  %p = window_reduce %e {kind = max, window = [1, 1, 2, 2], stride = [1, 1, 2, 2]}
  return %p
})")
                                          .value());
  const Schedule nest = plain_nest(4);
  const Schedule chain = {
      .order = {2},
      .own = ChainFields{.block = {{2, 5}}, .keep = {0, 1}, .stages = {nest, nest, nest}}};
  const std::vector<Stage> stages = stages_of(body, chain).value();
  EXPECT_EQ(stages[0].along[2], (Along{.dim = 2, .stride = 2, .first = -1, .window = 4}));
  EXPECT_EQ(stages[0].body.window[2], 12);
  EXPECT_EQ(stages[1].along[2], (Along{.dim = 2, .stride = 2, .first = 0, .window = 2}));
  EXPECT_EQ(stages[1].body.window[2], 10);
  Rng rng(1);
  check_kernel(body, chain, random_inputs(body.graph, rng), 16);
}

// The smallest blocks that compute little again, along one dim of those that overlap.
TEST(Halos, TheSimplestChainComputesLittleAgain) {
  const auto simplest = [](const WindowAlong& pool, int64_t rows = 40) {
    const Schedule chain = simplest_chain(of_images(rows, pool).body()).value();
    std::string text;
    for (const Tile& block : chain.get<ChainFields>().block)
      text += fmt::format("{}:{} ", block.dim, block.count);
    return text;
  };
  EXPECT_EQ(simplest(kPools[0]), "0:1 1:1 2:1 3:1 ");
  EXPECT_EQ(simplest(kPools[1]), "0:1 1:1 2:1 ");
  EXPECT_EQ(simplest(kPools[2]), "0:1 1:1 2:1 ");
  EXPECT_EQ(simplest(kPools[3]), "0:1 1:1 2:4 ");
  // There are no more rows.
  EXPECT_EQ(simplest(kPools[3], 4), "0:1 1:1 3:4 ");
}

// Only the rows that the next block needs as well are computed again.
TEST(Halos, WhatIsDoneTooOftenIsRefused) {
  const KernelBody body =
      ConvAndPool{.image = {1100, 1}, .conv = {{3, 1, 1, 1}, {1}}, .pool = {{.window = 17}, {1}}}
          .body();
  EXPECT_THAT(check_schedule(body, rows(body, 1), Target{}).error().to_string(),
              says("16.752727272727274 times ... 16 ... stage 0"));
  EXPECT_TRUE(check_schedule(body, rows(body, 2), Target{}).ok());
}

// Blocks of two dims, and of dims in the opposite order, are no points side by side.
TEST(Halos, OtherPartsAreRefused) {
  const auto refusal = [](std::string_view ops) {
    const KernelBody body = body_of_all(
        parse_graph(fmt::format("graph @g(%x: f32[6, 4]) -> f32[6, 4] {{ %a = tanh %x {} return "
                                "%y }}",
                                ops))
            .value());
    const Schedule nest = plain_nest(2);
    const Schedule chain = {
        .order = {0}, .own = ChainFields{.block = {{0, 2}}, .keep = {0}, .stages = {nest, nest}}};
    const Result<std::vector<Stage>> stages = stages_of(body, chain);
    return stages.ok() ? "" : stages.error().to_string();
  };
  EXPECT_EQ(refusal("%y = exp %a"), "");
  EXPECT_THAT(refusal("%y = reverse %a {axes = [0]}"), says("kept ... blocks ... dim 0"));
  EXPECT_THAT(
      refusal("%p = window_reduce %a {kind = sum, window = [3, 1], pad_low = [1, 0], pad_high "
              "= [1, 0]} %y = add %p, %a"),
      says("kept ... blocks ... dim 0"));
}

}  // namespace
}  // namespace hone::HONE_FILE
