#include "kernel/algorithms/block_winograd.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/winograd.h"
#include "kernel/algorithms/block_tiles.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"
#include "tests/program/random_convs.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

const BlockTilesFields& product_of(const Schedule& schedule) {
  return schedule.get<BlockWinogradFields>().stages.at(0).get<BlockTilesFields>();
}

// One that the interpreter runs in a moment.
bool is_small(const Schedule& schedule) {
  if (schedule.if_is<BlockWinogradFields>() == nullptr) return false;
  const BlockTilesFields& own = product_of(schedule);
  return own.rows * own.columns * own.depth <= 32 * 32 * 16;
}

void check_random(uint64_t first, uint64_t count, bool has_groups = false) {
  int checked = 0, fours = 0, by_warps = 0, ahead = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(random_winograd_conv(rng, has_groups ? rng.between(2, 3) : 1));
    draw_layouts(body, {}, rng);
    Schedule schedule;
    for (int i = 0; i < 300 && !is_small(schedule); ++i)
      schedule = random_schedule(body, any_gpu(), rng);
    if (!is_small(schedule)) continue;
    SCOPED_TRACE(print(body.graph));
    check_block_kernel(body, schedule, random_inputs(body.graph, rng));
    if (testing::Test::HasFailure()) return;
    ++checked;
    fours += schedule.get<BlockWinogradFields>().points == 4 ? 1 : 0;
    by_warps += product_of(schedule).products == Products::matrix ? 1 : 0;
    ahead += product_of(schedule).ahead > 0 ? 1 : 0;
  }
  EXPECT_GT(checked, static_cast<int>(count) / 2);
  EXPECT_GT(fours, 0);
  EXPECT_GT(by_warps, checked / 8);
  EXPECT_GT(ahead, checked / 4);
}

TEST(BlockWinograd, RandomConvsComputeWhatTheReferenceDoes) {
  check_random(0, tested::share_of(16, 2));
}
TEST(BlockWinograd, RandomGroupsComputeWhatTheReferenceDoes) {
  check_random(1'000, tested::share_of(8, 2), true);
}
TEST(BlockWinograd, DISABLED_SweepRandomConvs) { check_random(1'000'000, 1'000); }
TEST(BlockWinograd, DISABLED_SweepRandomGroups) { check_random(2'000'000, 1'000, true); }

// ---- One conv
// ------------------------------------------------------------------------------------

constexpr std::string_view kConv =
    "graph @g(%x: f32[2, 16, 9, 11], %w: f32[20, 16, 3, 3], %b: f32[20]) { "
    "%c = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4} "
    "%d = broadcast %b {dims = [2, 20, 9, 11], map = [1]} %y = add %c, %d return %y }";

KernelBody conv_body(std::string_view text = kConv) {
  return body_of_all(parse_graph(text).value());
}

Schedule winograd_of(int points, const BlockTilesFields& product) {
  return {.order = {0, 1, 2, 3},
          .threads = 4,
          .own = BlockWinogradFields{
              .points = points, .stages = {{.order = {0, 1, 2, 3}, .threads = 4, .own = product}}}};
}
constexpr BlockTilesFields kPlain = {
    .rows = 16, .columns = 32, .depth = 8, .own_rows = 2, .own_columns = 4, .ahead = 1};
constexpr BlockTilesFields kInParts = {.rows = 16,
                                       .columns = 32,
                                       .depth = 16,
                                       .own_rows = 16,
                                       .own_columns = 16,
                                       .products = Products::matrix,
                                       .ahead = 1};

TEST(BlockWinograd, HasATextForm) {
  const std::string text = print(winograd_of(4, kPlain));
  EXPECT_EQ(text,
            "{algorithm = block_winograd, order = [0, 1, 2, 3], threads = 4, points = 4, stages = "
            "[{algorithm = block_tiles, order = [0, 1, 2, 3], threads = 4, rows = 16, "
            "columns = 32, depth = 8, own_rows = 2, own_columns = 4, ahead = 1, splits = 1}]}");
}

// 2 images of 3 x 3 tiles, 16 channels, 20 features, 36 products.
TEST(BlockWinograd, TransformsMultipliesAndMakesResults) {
  const KernelBody body = conv_body();
  for (const BlockTilesFields& own : {kPlain, kInParts}) {
    Rng rng(1);
    check_block_kernel(body, winograd_of(4, own), random_inputs(body.graph, rng));
  }
  const TileProgram program = build_kernel(body, winograd_of(4, kPlain), "k").value();
  ASSERT_EQ(program.phases.size(), 3U);
  EXPECT_EQ(trips_of(program.phases[0], program).value(), 16 * 18);
  EXPECT_EQ(trips_of(program.phases[1], program).value(), 36 * 2 * 1);
  EXPECT_EQ(trips_of(program.phases[2], program).value(), 20 * 18);
}

// Neighbours in memory decide what lies side by side between the phases.
TEST(BlockWinograd, ThreadsSideBySideHaveNeighboursInMemory) {
  const auto of = [](std::string_view text) {
    const KernelBody body = conv_body(text);
    const KernelFacts facts(body);
    return block_winograd(body, facts, 2).value();
  };
  const BlockWinograd first = of(kConv);
  EXPECT_FALSE(first.channels_last || first.features_last);
  const BlockWinograd last =
      of("graph @g(%x: f32[1, 8, 8, 16], %w: f32[3, 3, 16, 20]) { %y = conv %x, %w "
         "{order = \"b01f_01io->b01f\", winograd = 2} return %y }");
  EXPECT_TRUE(last.channels_last && last.features_last);
}

void expect_accurate(const KernelBody& body, const Schedule& schedule,
                     std::initializer_list<uint64_t> seeds) {
  const TileProgram program = build_kernel(body, schedule, "k").value();
  const PreparedInput prepared = *prepared_input(body, schedule);
  std::vector<AccuracyRun> runs;
  for (uint64_t seed : seeds) {
    Rng rng(seed);
    std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    const auto reference = [&](Numerics numerics) {
      return evaluate(body.graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true})
          .value()[0];
    };
    const Tensor wide = reference(Numerics::wide), fp32 = reference(Numerics::fp32);
    inputs[prepared.parameter] = prepared.value(inputs[prepared.parameter]);
    runs.push_back({interpret(program, inputs, {.cuts_sums = true}).value()[0], wide, fp32});
  }
  const Accuracy result = accuracy(runs).value();
  EXPECT_TRUE(result.passed()) << print(schedule) << ": " << result.to_string();
}

// Tensor cores that cut sums off keep the rule for f32, too.
TEST(BlockWinograd, KeepsTheAccuracyOfF32) {
  const KernelBody body = conv_body();
  for (int points : {2, 4})
    for (const BlockTilesFields& own : {kPlain, kInParts})
      expect_accurate(body, winograd_of(points, own), {1, 2});
}

// Long sums that are cut off lose the most. The permission is that of such weights.
TEST(BlockWinograd, KeepsTheAccuracyOfF32InSumsOf512Channels) {
  const std::string conv =
      "conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4} return %y }";
  const KernelBody body =
      conv_body("graph @g(%x: f32[1, 512, 4, 4], %w: f32[16, 512, 3, 3]) { %y = " + conv);
  Rng rng(1);
  const Tensor weights = random_inputs(body.graph, rng)[1];
  EXPECT_EQ(winograd_points(weights, *parse_conv_order("", 2)), 4);
  BlockTilesFields own = kInParts;
  own.columns = 16;
  expect_accurate(body, winograd_of(4, own), {1});
}

// Somebody asked for its fewer bits.
TEST(BlockWinograd, MultipliesTf32WhereTheConvDoes) {
  const auto numbers = [](std::string_view parts) {
    const KernelBody body = conv_body(
        fmt::format("graph @g(%x: f32[1, 16, 8, 8], %w: f32[16, 16, 3, 3]) {{ %y = conv %x, %w "
                    "{{winograd = 4{}}} return %y }}",
                    parts));
    const KernelFacts facts(body);
    const KernelBody product = block_winograd(body, facts, 4)->product;
    return *tensor_numbers(KernelFacts(product));
  };
  EXPECT_TRUE(numbers(", parts = 1").are_tf32);
  EXPECT_FALSE(numbers("").are_tf32);
}

TEST(BlockWinograd, AMissingBarrierIsFound) {
  const KernelBody body = conv_body();
  const Schedule schedule = winograd_of(2, kPlain);
  const std::string text = print(build_kernel(body, schedule, "k").value());
  const std::string without = changed(text, "    barrier\n", "");
  ASSERT_FALSE(without.empty()) << text;
  Rng rng(1);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  const PreparedInput prepared = *prepared_input(body, schedule);
  inputs[prepared.parameter] = prepared.value(inputs[prepared.parameter]);
  EXPECT_FALSE(interpret(parse_tiles(without).value(), inputs).ok());
}

TEST(BlockWinograd, SaysWhatItCannotDo) {
  const auto status = [](const Schedule& schedule, std::string_view text = kConv,
                         const Target& target = any_gpu()) {
    return check_schedule(conv_body(text), schedule, target);
  };
  EXPECT_TRUE(status(winograd_of(4, kPlain)).ok());
  EXPECT_THAT(status(winograd_of(4, kPlain), kConv, Target{}),
              refuses(ErrorCode::unsupported, "GPU"));
  EXPECT_THAT(status(winograd_of(3, kPlain)), refuses(ErrorCode::bad_input, "3 points"));
  Schedule bad = winograd_of(2, kPlain);
  bad.get<BlockWinogradFields>().stages.clear();
  EXPECT_THAT(status(bad), refuses(ErrorCode::bad_input, "one stage ... block_tiles"));
  BlockTilesFields large = kPlain;
  large.rows = 48;
  EXPECT_THAT(status(winograd_of(2, large)), refuses(ErrorCode::bad_input, "stage 0 ... 48 rows"));
  EXPECT_THAT(status(winograd_of(4, kPlain),
                     "graph @g(%x: f32[1, 4, 8, 8], %w: f32[4, 4, 3, 3]) { %y = conv %x, %w "
                     "{winograd = 2} return %y }"),
              refuses(ErrorCode::unsupported, "2 ... 4"));
  EXPECT_THAT(status(winograd_of(2, kPlain),
                     "graph @g(%x: f32[N, 4, 8, 8], %w: f32[4, 4, 3, 3]) where N in 1..4 { %y = "
                     "conv %x, %w {winograd = 2} return %y }"),
              refuses(ErrorCode::unsupported, "batch"));
}

// They lie beside all else that a run has in memory. Code for a preset meets smaller cards.
TEST(BlockWinograd, TransformedTilesTakeAPartOfTheMemory) {
  // 16 channels and features: 36 * 3136 * 32 numbers of f32 an image, 14.5 MB.
  const auto status = [](int64_t images, const Target& target) {
    const KernelBody body = conv_body(
        fmt::format("graph @g(%x: f32[{}, 16, 224, 224], %w: f32[16, 16, 3, 3]) {{ %y = conv %x, "
                    "%w {{pad_low = [1, 1], pad_high = [1, 1], winograd = 4}} return %y }}",
                    images));
    return check_schedule(body, winograd_of(4, kPlain), target);
  };
  EXPECT_TRUE(status(37, any_gpu()).ok());
  EXPECT_THAT(status(38, any_gpu()), refuses(ErrorCode::limit, "transformed ... 512.0 MiB"));
  Target card = any_gpu();
  card.cpu = "a card that is there";
  EXPECT_TRUE(status(38, card).ok());
  card.memory_bytes = int64_t{4} << 30;
  EXPECT_THAT(status(38, card), refuses(ErrorCode::limit, "transformed ... 512.0 MiB"));
  card.memory_bytes = int64_t{1} << 30;
  EXPECT_THAT(status(10, card), refuses(ErrorCode::limit, "transformed ... 128.0 MiB"));
  EXPECT_TRUE(status(9, card).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
