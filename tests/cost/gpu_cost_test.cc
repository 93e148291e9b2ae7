#include "cost/gpu_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "cost/gpu_model.h"
#include "ir/text.h"
#include "rewrite/prepare.h"
#include "target/gpu_presets.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

// The terms of a kernel by a schedule.
std::string terms_of(const Graph& graph, const Schedule& schedule) {
  const auto facts = std::make_shared<const KernelFacts>(body_of_all(graph));
  const Target gpu = *preset_gpu("sm_90");
  const Status legal = check_schedule(facts->body, *facts, schedule, gpu);
  EXPECT_TRUE(legal.ok()) << legal.error().to_string();
  const GpuTimes times = GpuCost(gpu).times(facts, schedule);
  std::string text = fmt::format("{:.4g} {:.4g} {:.4g} {:.4g} {:.4g}", times.launch,
                                 times.arithmetic, times.latency, times.memory, times.access);
  if (times.transforms > 0) text += fmt::format(" {:.4g}", times.transforms);
  return text;
}

std::string terms_of(std::string_view text, const Schedule& schedule) {
  return terms_of(prepare(parse_graph(text).value()).value(), schedule);
}

constexpr std::string_view kGather =
    "graph @g(%t: f32[50257, 768], %i: i64[1]) { %r = gather %t, %i {offset_dims = [1], "
    "collapsed_dims = [0], index_map = [0], index_vector_dim = 1, sizes = [1, 768]} "
    "return %r }";
constexpr std::string_view kSum =
    "graph @g(%x: f32[1000000]) { %y = cumulative %x {kind = sum, axis = 0} return %y }";
constexpr std::string_view kSort = "graph @g(%x: f32[60000]) { %y = sort %x {axis = 0} return %y }";
constexpr std::string_view kScatter =
    "graph @g(%x: f32[50257, 768], %i: i64[1024, 1], %u: f32[1024, 768]) { %y = scatter %x, %i, %u "
    "{window_dims = [1], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
    "combine = add} return %y }";
const Schedule kInOrder = {.own = GenericFields{}};

constexpr BlockTilesFields kByWarps = {.rows = 64,
                                       .columns = 64,
                                       .depth = 32,
                                       .own_rows = 32,
                                       .own_columns = 32,
                                       .products = Products::matrix,
                                       .ahead = 1};

constexpr BlockTilesFields kByGroups = {.rows = 128,
                                        .columns = 128,
                                        .depth = 64,
                                        .products = Products::matrix,
                                        .ahead = 3,
                                        .groups = 1};

// A conv whose tiles may be transformed, and a schedule that does it.
Graph winograd_conv(int64_t channels, int64_t side) {
  return parse_graph(fmt::format("graph @g(%x: f32[32, {0}, {1}, {1}], %w: f32[{0}, {0}, 3, 3]) {{ "
                                 "%y = conv %x, %w {{pad_low = [1, 1], pad_high = [1, 1], "
                                 "winograd = 4}} return %y }}",
                                 channels, side))
      .value();
}
const Schedule kDirect = {.order = {0, 1, 2, 3}, .threads = 4, .own = kByWarps};
const Schedule kTransformed = {.order = {0, 1, 2, 3},
                               .threads = 4,
                               .own = BlockWinogradFields{.points = 4, .stages = {kDirect}}};

// Whoever changes a formula sees this fail, and raises kGpuFormulas: what was learned beside the
// old formulas must not count any more. The terms of a number stay as they are: a new number has
// new ones, and the last is in force.
TEST(GpuCost, FormulasHaveANumber) {
  BlockTilesFields by_warps = kByWarps;
  by_warps.splits = 2;
  BlockTilesFields in_shares = by_warps;
  in_shares.splits = 1;
  in_shares.shares = 50;
  const std::string_view product =
      "graph @g(%x: bf16[512, 1024], %w: bf16[512, 1024]) { %y = dot %x, %w {lhs_contract = [1], "
      "rhs_contract = [1]} return %y }";
  const std::vector<std::string> terms = {
      terms_of("graph @g(%x: f32[1024, 256]) { %y = exp %x return %y }",
               {.order = {0, 1}, .threads = 2, .own = NestFields{}}),
      terms_of("graph @g(%x: f32[512, 1000]) { %y = softmax %x {axis = 1} return %y }",
               {.order = {0, 1}, .threads = 1, .own = BlockRowsFields{.warps = 4, .kept = 1}}),
      terms_of(product, {.order = {0, 1}, .threads = 2, .own = by_warps}),
      terms_of(product, {.order = {0, 1}, .threads = 2, .own = in_shares}),
      terms_of("graph @g(%q: f32[60, 8], %k: f32[70, 8], %v: f32[70, 8]) { "
               "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [1]} "
               "%p = softmax %s {axis = 1} "
               "%y = dot %p, %v {lhs_contract = [1], rhs_contract = [0]} return %y }",
               {.order = {0}, .threads = 1, .own = BlockChainFields{.warps = 2}}),
      terms_of(product, {.order = {0, 1}, .threads = 2, .own = kByGroups}),
      terms_of(kGather, {.order = {0, 1}, .threads = 2, .own = NestFields{}}),
      terms_of(kSum, kInOrder),
      terms_of(kScatter, kInOrder),
      terms_of(kScatter, {.own = BlockScatterFields{.warps = 8}}),
      terms_of(kSum, {.own = BlockScanFields{.warps = 8, .points = 8, .parts = 32}}),
      terms_of(kSort, {.own = BlockSortFields{.warps = 16, .pairs = 2}}),
      terms_of(
          "graph @g(%x: f32[8192, 1024]) { %y = reduce %x {kind = sum, axes = [0]} return %y }",
          {.order = {0},
           .threads = 1,
           .own = BlockSumsFields{.warps = 8, .columns = 32, .splits = 8}}),
      terms_of("graph @g(%x: f32[4096, 512]) { %t = transpose %x {permutation = [1, 0]} "
               "%y = exp %t return %y }",
               {.order = {0, 1}, .threads = 2, .own = BlockCopyFields{.warps = 8}}),
      terms_of("graph @g(%q: bf16[512, 64], %k: bf16[2048, 64], %v: bf16[2048, 64]) { "
               "%s = dot %q, %k {lhs_contract = [1], rhs_contract = [1]} "
               "%p = softmax %s {axis = 1} "
               "%y = dot %p, %v {lhs_contract = [1], rhs_contract = [0]} return %y }",
               {.order = {0},
                .threads = 1,
                .own = BlockChainFields{.block = {{0, 32}, {2, 64}}, .warps = 4}}),
      terms_of(winograd_conv(64, 28), kTransformed)};
  const std::map<int64_t, std::vector<std::string>> known = {
      {1,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.637e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10"}},
      {2,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.625e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10"}},
      {3,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.625e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10", "6e-07 9.496e-06 0 9.709e-07 0",
        "6e-07 4.592e-11 2e-08 2.279e-09 1.119e-09", "6e-07 1.794e-07 0.06 2.963e-06 1.164e-05"}},
      {4,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.625e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10", "6e-07 9.496e-06 0 9.709e-07 0",
        "6e-07 4.592e-11 2e-08 2.279e-09 1.119e-09", "6e-07 1.794e-07 0.06 2.963e-06 1.164e-05",
        "6e-07 4.851e-06 0.07872 0.0001155 0.0004629",
        "6e-07 5.203e-06 3.027e-05 0.0001155 7.179e-05",
        "6e-07 1.144e-06 3.921e-05 2.963e-06 2.219e-06",
        "6e-07 1.174e-05 7.708e-05 1.778e-07 5.258e-05",
        "6e-07 1.654e-06 9.08e-06 1.243e-05 6.113e-06",
        "6e-07 2.445e-06 3.025e-06 6.214e-06 3.05e-06"}},
      {5,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.625e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10", "6e-07 9.496e-06 0 9.709e-07 0",
        "6e-07 4.592e-11 2e-08 2.279e-09 1.119e-09", "6e-07 1.794e-07 0.06 2.963e-06 1.164e-05",
        "6e-07 4.851e-06 0.07872 0.0001155 0.0004629",
        "6e-07 5.203e-06 3.029e-05 0.0001155 7.179e-05",
        "6e-07 1.144e-06 3.921e-05 2.963e-06 2.219e-06",
        "6e-07 1.176e-05 7.718e-05 1.778e-07 5.258e-05",
        "6e-07 1.654e-06 9.08e-06 1.243e-05 6.113e-06",
        "6e-07 2.445e-06 3.025e-06 6.214e-06 3.05e-06",
        "6e-07 3.95e-05 0.000175 4.855e-07 2.292e-09"}},
      {6,
       {"6e-07 1.567e-08 2e-08 7.767e-07 3.813e-07",
        "6e-07 5.173e-07 6.601e-07 3.034e-06 7.447e-07",
        "6e-07 5.505e-06 1.835e-05 9.709e-07 3.813e-06",
        "6e-07 1.386e-05 4.505e-05 9.709e-07 3.625e-06",
        "6e-07 1.88e-07 1.861e-06 6.163e-09 8.262e-10", "6e-07 9.496e-06 0 9.709e-07 0",
        "6e-07 4.592e-11 2e-08 2.279e-09 1.119e-09", "6e-07 1.794e-07 0.06 2.963e-06 1.164e-05",
        "6e-07 4.851e-06 0.07872 0.0001155 0.0004629",
        "6e-07 5.203e-06 3.029e-05 0.0001155 7.179e-05",
        "6e-07 1.144e-06 3.921e-05 2.963e-06 2.219e-06",
        "6e-07 1.176e-05 7.718e-05 1.778e-07 5.258e-05",
        "6e-07 1.654e-06 9.08e-06 1.243e-05 6.113e-06",
        "6e-07 2.445e-06 3.025e-06 6.214e-06 3.05e-06",
        "6e-07 3.95e-05 0.000175 4.855e-07 2.292e-09",
        "6e-07 1.89e-05 1.195e-05 2.185e-07 5.362e-06 1.282e-05"}}};
  EXPECT_EQ(terms, known.rbegin()->second);
  EXPECT_EQ(kGpuFormulas, known.rbegin()->first);
  std::set<std::vector<std::string>> apart;
  for (const auto& [number, made] : known) apart.insert(made);
  EXPECT_EQ(apart.size(), known.size()) << "a number for the terms of another";
}

GpuTimes times_of(KernelBody body, const Schedule& schedule) {
  const auto facts = std::make_shared<const KernelFacts>(std::move(body));
  return GpuCost(*preset_gpu("sm_90")).times(facts, schedule);
}

KernelBody body_of_text(std::string_view graph) {
  return body_of_all(prepare(parse_graph(graph).value()).value());
}

// A row of a table costs what a row takes, not the table. An update in place has its own points.
TEST(GpuCost, PartsOfArraysCostTheirOwnBytes) {
  const Schedule nest = {.order = {0, 1}, .threads = 2, .own = NestFields{}};
  const double row = 768 * 4, rate = 0.9 * preset_gpu("sm_90")->memory_all_cores;
  EXPECT_NEAR(times_of(body_of_text(kGather), nest).memory, (2 * row + 8) / rate, 1e-12);
  KernelBody update = body_of_text(
      "graph @g(%c: f32[1024, 768], %r: f32[1, 768], %i: i64[], %j: i64[]) { "
      "%y = dynamic_update %c, %r, %i, %j return %y }");
  update.in_place = true;
  const GpuTimes own = times_of(std::move(update), nest);
  EXPECT_DOUBLE_EQ(own.latency, kGpuStep);  // a thread has one number
  EXPECT_LT(own.memory, 3 * row / rate);
}

// Nothing of such an op runs side by side but other rows: a thread takes them one after another.
TEST(GpuCost, OpsWithAnOrderTakeTheTimeOfTheirLongestThread) {
  const auto latency = [](std::string_view graph) {
    return times_of(body_of_text(graph), kInOrder).latency;
  };
  const double sum = latency(kSum);
  EXPECT_GE(sum, 1e6 * kGpuStep);
  EXPECT_LT(sum, 10e6 * kGpuStep);
  const double sort = latency(kSort);
  EXPECT_GE(sort, 60000 * 16 * kGpuStep);  // passes
  EXPECT_LT(latency("graph @g(%x: f32[1000, 60]) { %y = sort %x {axis = 1} return %y }"),
            sort / 500);
  EXPECT_GE(latency(kScatter), 1024 * 768 * kGpuStep);
}

// Factors that were learned are of these. Four warps have a tile, two steps are in memory at a
// time.
// Merges of pieces that keep few elements are short.
TEST(GpuCost, TheFirstOfASortCostLessThanAll) {
  const Target gpu = *preset_gpu("sm_90");
  const auto seconds = [&](int64_t first) {
    const auto facts = std::make_shared<const KernelFacts>(body_of_all(
        parse_graph(fmt::format("graph @g(%x: f32[4, 1000000]) {{ %y = sort %x {{axis = 1, "
                                "first = {}}} return %y }}",
                                first))
            .value()));
    const Schedule schedule = {.own = BlockSortFields{.warps = 16, .pairs = 2}};
    return GpuCost(gpu).times(facts, schedule).total();
  };
  EXPECT_LT(seconds(50), 0.7 * seconds(0));
  EXPECT_LT(seconds(50), seconds(5000));
}

// A quarter of the products, and the transforms. Few channels do not pay for these.
TEST(GpuCost, TransformedTilesPayForManyChannels) {
  const Target gpu = *preset_gpu("sm_90");
  const auto gain = [&](int64_t channels) {
    const auto facts =
        std::make_shared<const KernelFacts>(body_of_all(winograd_conv(channels, 28)));
    const GpuCost cost(gpu);
    return cost.times(facts, kDirect).total() / cost.times(facts, kTransformed).total();
  };
  EXPECT_GT(gain(256), 1.5);
  EXPECT_LT(gain(4), 1);
}

// The product cannot hide the memory of the transforms. These are other launches.
TEST(GpuCost, TransformsOfTilesAreLaunchesOfTheirOwn) {
  const Target gpu = *preset_gpu("sm_90");
  const auto facts = std::make_shared<const KernelFacts>(body_of_all(winograd_conv(64, 224)));
  const GpuCost cost(gpu);
  const GpuTimes times = cost.times(facts, kTransformed);
  const double rate = 0.9 * gpu.memory_all_cores;
  const double image = 4.0 * 32 * 64 * 224 * 224, tiles = 4.0 * 36 * 32 * 56 * 56 * 64;
  EXPECT_GT(times.transforms, 2 * (image + tiles) / rate + 2 * gpu.gpu->launch);
  EXPECT_GT(times.memory, 2 * tiles / rate);
  EXPECT_LT(times.memory, 2.1 * tiles / rate);
  EXPECT_GT(times.total(), times.transforms + std::max(times.arithmetic, times.memory));
  EXPECT_DOUBLE_EQ(cost.kernel(facts, 1)->terms(kTransformed).back().seconds, times.transforms);
  EXPECT_EQ(cost.times(facts, kDirect).transforms, 0);
}

TEST(GpuCost, FeaturesAreLogarithmsOfDemands) {
  const KernelFacts facts(body_of_all(
      parse_graph("graph @g(%x: bf16[512, 1024], %w: bf16[512, 1024]) { %y = dot %x, %w "
                  "{lhs_contract = [1], rhs_contract = [1]} return %y }")
          .value()));
  BlockTilesFields own = kByWarps;
  own.shares = 50;
  const Schedule schedule = {.order = {0, 1}, .threads = 2, .own = own};
  const GpuFeatures features = gpu_features(facts, schedule);
  EXPECT_EQ(features[0], 1);
  EXPECT_DOUBLE_EQ(features[1], std::log2(1 + 50));
  EXPECT_DOUBLE_EQ(features[2], std::log2(1 + 4));
  EXPECT_DOUBLE_EQ(features[3], std::log2(1 + 2 * (64 + 64) * 32 * 2));
}

TEST(GpuCost, VersionsTellTargetsAndFormulas) {
  const GpuCost one(*preset_gpu("sm_90")), other(*preset_gpu("sm_80"));
  EXPECT_NE(one.version(), other.version());
  EXPECT_EQ(one.version(), GpuCost(*preset_gpu("sm_90")).version());
  EXPECT_NE(one.version().find(fmt::format("analytic {}", kGpuFormulas)), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
