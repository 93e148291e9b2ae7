#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_convs.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

void check_random(uint64_t first, uint64_t count, bool has_groups = false) {
  int checked = 0, lanes = 0, divided = 0, blocks = 0, fours = 0, parts = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(random_winograd_conv(rng, has_groups ? rng.between(2, 5) : 1));
    const Specials specials = specials_of(seed);
    draw_layouts(body, specials, rng);
    donate_some(body, rng);
    const Schedule schedule = random_schedule_by(Algorithm::winograd, body, Target{}, rng);
    if (testing::Test::HasFailure()) return;
    SCOPED_TRACE(print(body.graph));
    check_drawn_kernel(body, schedule, specials, rng);
    if (testing::Test::HasFailure()) return;
    ++checked;
    lanes += schedule.lanes.empty() ? 0 : 1;
    divided += schedule.threads > 0 ? 1 : 0;
    blocks += schedule.get<WinogradFields>().block.empty() ? 0 : 1;
    fours += schedule.get<WinogradFields>().points == 4 ? 1 : 0;
    parts += schedule.get<WinogradFields>().parts > 1 ? 1 : 0;
  }
  EXPECT_GT(lanes, checked / 4);
  EXPECT_GT(divided, checked / 4);
  EXPECT_GT(blocks, checked / 4);
  EXPECT_GT(fours, checked / 8);
  EXPECT_GT(parts, checked / 16);
}

TEST(Winograd, RandomConvsComputeWhatTheReferenceDoes) {
  check_random(0, tested::share_of(150, 2));
}
TEST(Winograd, RandomGroupsComputeWhatTheReferenceDoes) {
  check_random(1000, tested::share_of(60, 4), true);
}
TEST(Winograd, DISABLED_SweepRandomConvs) { check_random(1'000'000, 20'000); }
TEST(Winograd, DISABLED_SweepRandomGroups) { check_random(2'000'000, 20'000, true); }

TEST(Winograd, AnOpenBatchComputesWhatTheReferenceDoes) {
  const KernelBody body = body_of_all(parse_graph(R"(
graph @g(%x: f32[N, 3, 7, 9], %w: f32[5, 3, 3, 3]) -> f32[N, 5, 7, 9] where N in 0..9 {
  %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4}
  return %y
})")
                                          .value());
  int winograds = 0;
  Rng rng(1);
  for (uint64_t i = 0; i < tested::share_of(400, 2); ++i) {
    const Schedule schedule = random_schedule(body, Target{}, rng);
    if (schedule.algorithm() != Algorithm::winograd) continue;
    ++winograds;
    const Bindings sizes = {{"N", rng.between(0, 9)}};
    const Graph graph = specialize(body.graph, sizes).value();
    check_open_kernel(body, schedule, sizes, random_inputs(graph, rng), 16);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(winograds, 20);
}

std::string refusal(std::string_view attributes, const Schedule& schedule,
                    std::string_view dtype = "f32", int64_t channels_of_group = 4) {
  const std::string text = fmt::format(
      "graph @g(%x: {0}[1, 4, 8, 8], %w: {0}[4, {3}, 3, 3]) {{ %y = conv %x, %w {{{1}{2}}} return "
      "%y }}",
      dtype, attributes, attributes.starts_with("winograd") ? "" : ", winograd = 2",
      channels_of_group);
  const KernelBody body = body_of_all(parse_graph(text).value());
  const Status status = check_schedule(body, schedule, Target{});
  return status.ok() ? "" : status.error().to_string();
}

TEST(Winograd, SchedulesThatDoNotFitAreRefused) {
  constexpr std::string_view kPad = "pad_low = [0, 0]";
  const Schedule good = {.order = {0, 2, 3, 1}, .own = WinogradFields()};
  EXPECT_EQ(refusal("pad_low = [1, 1], pad_high = [2, 0]", good), "");
  for (std::string_view attributes : {"stride = [2, 2]", "stride = [1, 2]",
                                      "kernel_dilation = [2, 1]", "input_dilation = [2, 2]"})
    EXPECT_THAT(refusal(attributes, good),
                says("winograd ... windows of 3 ... stride 1 ... dilation"))
        << attributes;
  EXPECT_THAT(refusal(kPad, good, "i32"), says("winograd ... fractions ... i32"));
  EXPECT_THAT(refusal("winograd = 0", good), says("conv ... products ... transformed"));
  EXPECT_EQ(refusal("groups = 2", good, "f32", 2), "");
  EXPECT_THAT(refusal("groups = 4", good, "f32", 1), says("winograd ... channels ... depthwise"));
  Schedule bad = good;
  bad.order = {0, 1, 2, 3};
  EXPECT_THAT(refusal(kPad, bad), says("dim 1 ... features ... innermost"));
  bad = good;
  bad.lanes = {{3, 4}};
  EXPECT_THAT(refusal(kPad, bad), says("winograd ... lanes ... features ... dim 3"));
  bad = good;
  bad.own = WinogradFields{.points = 4};
  EXPECT_THAT(refusal(kPad, bad), says("conv ... 2 points ... 4"));
  bad.own = WinogradFields{.points = 3};
  EXPECT_THAT(refusal(kPad, bad), says("winograd ... transform ... 3 points"));
  bad.own = WinogradFields{.block = {{1, 2}}};
  EXPECT_THAT(refusal(kPad, bad), says("winograd ... blocks ... image ... dim 1"));
  bad.own = WinogradFields{.parts = 3};
  EXPECT_THAT(refusal(kPad, bad), says("winograd ... features ... 3 parts ... 2, 4 or 8"));
  bad.own = WinogradFields{.parts = 2};
  EXPECT_EQ(refusal(kPad, bad), "");
  bad.lanes = {{1, 4}};
  EXPECT_THAT(refusal(kPad, bad), says("2 parts ... features ... panels of 4"));
  bad.lanes.clear();
  bad.own = WinogradFields{.block = {{2, 5}}};
  EXPECT_THAT(refusal(kPad, bad), says("block of 5 tiles ... 1..3 ... dim 2"));
}

// The points along a dim of tiles that see a place of the data, with padding of 1.
bool tile_sees(int64_t point, int64_t place, int64_t points) {
  const int64_t first = point / points * points;
  return first - 1 <= place && place <= first + points;
}

// One place of the data has an infinity, NaN or a number that is too large to transform. As
// docs/ir.md says, tiles that do not see it are right. Windows that see an infinity or NaN have no
// finite sum.
void check_one_place(const KernelBody& body, const Schedule& schedule, int64_t points,
                     double special) {
  SCOPED_TRACE(fmt::format("{} {}", special, print(schedule)));
  constexpr int64_t kSide = 12, kRow = 5, kColumn = 6;
  Rng rng(1);
  std::vector<Tensor> inputs = random_inputs(body.graph, rng);
  std::vector<double> data;
  for (int64_t i = 0; i < inputs[0].elements(); ++i) data.push_back(inputs[0].real_at(i));
  data[(3 * kSide + kRow) * kSide + kColumn] = special;
  inputs[0] = Tensor::from_reals(inputs[0].type(), data);
  const Tensor wide = evaluate(body.graph, inputs, {.numerics = Numerics::wide}).value()[0];
  const PreparedInput prepared = *prepared_input(body, schedule);
  inputs[prepared.parameter] = prepared.value(inputs[prepared.parameter]);
  const Tensor made =
      interpret(build_kernel(body, schedule, "k").value(), inputs, {.cuts_sums = true}).value()[0];
  int64_t lost = 0;
  for (int64_t i = 0; i < made.elements(); ++i) {
    const int64_t row = i / kSide % kSide, column = i % kSide;
    const bool is_seen = std::abs(row - kRow) <= 1 && std::abs(column - kColumn) <= 1;
    if (!tile_sees(row, kRow, points) || !tile_sees(column, kColumn, points))
      EXPECT_NEAR(made.real_at(i), wide.real_at(i), 1e-4) << row << ", " << column;
    else if (is_seen && !std::isfinite(special))
      EXPECT_FALSE(std::isfinite(made.real_at(i))) << row << ", " << column;
    else if (!is_seen)
      lost += std::isfinite(made.real_at(i)) ? 0 : 1;
  }
  // With two points the numbers that one window sees alone are in products of its own.
  EXPECT_EQ(lost > 0, points == 4);
}

TEST(Winograd, OneHugeNumberOfTheDataStaysInTheTilesThatSeeIt) {
  const KernelBody body = body_of_all(
      parse_graph(
          "graph @g(%x: f32[1, 16, 12, 12], %w: f32[8, 16, 3, 3]) { "
          "%y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4} return %y }")
          .value());
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double special : {kInf, -kInf, std::nan(""), 3e38})
    for (int points : {2, 4}) {
      check_one_place(body,
                      {.order = {0, 2, 3, 1},
                       .lanes = {{1, 8}},
                       .unroll = {{3, 2}},
                       .own = WinogradFields{.points = points, .block = {{2, 2}, {3, 2}}}},
                      points, special);
      for (Products products : {Products::plain, Products::matrix}) {
        const Schedule product = {.order = {0, 1, 2, 3},
                                  .threads = 4,
                                  .own = BlockTilesFields{.rows = 16,
                                                          .columns = 16,
                                                          .depth = 16,
                                                          .own_rows = 16,
                                                          .own_columns = 16,
                                                          .products = products}};
        check_one_place(body,
                        {.order = {0, 1, 2, 3},
                         .threads = 4,
                         .own = BlockWinogradFields{.points = points, .stages = {product}}},
                        points, special);
      }
    }
}

TEST(Winograd, ReadsItsWeightsTransformedAndInPanels) {
  const KernelBody body = body_of_all(
      parse_graph(
          "graph @g(%x: f32[1, 8, 8, 8], %w: f32[20, 8, 3, 3]) { "
          "%y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1], winograd = 4} return %y }")
          .value());
  const Schedule schedule = {.order = {0, 2, 3, 1},
                             .lanes = {{1, 8}},
                             .unroll = {{1, 2}, {3, 4}},
                             .own = WinogradFields{.points = 4, .block = {{2, 2}, {3, 2}}}};
  const PreparedInput weights = prepared_input(body, schedule).value();
  EXPECT_EQ(weights.parameter, 1U);
  EXPECT_EQ(weights.type.to_string(), "f32[2, 36, 8, 16]");
  // G g G^T of a window that is 1 in the middle has (0, p, -p, q, -q, 0) / ... along each side.
  std::vector<double> middle(20 * 8 * 9, 0);
  for (size_t i = 4; i < middle.size(); i += 9) middle[i] = 1;
  const Tensor made = weights.value(Tensor::from_reals(body.graph.input_types()[1], middle));
  const double once = 0.75 / ((0.75 - 0) * 1.5 * (0.75 - 1.5) * (0.75 + 1.5));
  EXPECT_EQ(made.real_at(0), 0);
  EXPECT_NEAR(made.real_at((6 + 1) * 8 * 16), once * once, 1e-7);
  EXPECT_EQ(made.real_at(made.elements() - 1), 0);  // behind the last feature
  const std::string text = print(build_kernel(body, schedule, "k").value());
  EXPECT_NE(text.find("scratch @data: f32[36, 48]"), std::string::npos) << text;
  EXPECT_NE(text.find("scratch @sums: f32[36, 80]"), std::string::npos) << text;
}

// So that all lanes of a panel sum the same channels.
TEST(Winograd, PanelsOfWeightsLieWithinOneGroup) {
  const KernelBody body = body_of_all(
      parse_graph(
          "graph @g(%x: f32[1, 6, 8], %w: f32[10, 3, 3]) { "
          "%y = conv %x, %w {pad_low = [1], pad_high = [1], groups = 2, winograd = 2} return %y }")
          .value());
  const Schedule schedule = {.order = {0, 2, 1}, .lanes = {{1, 4}}, .own = WinogradFields()};
  const PreparedInput weights = prepared_input(body, schedule).value();
  EXPECT_EQ(weights.type.to_string(), "f32[4, 4, 3, 4]");
  // The first product takes the first weight of a window: here the number of its feature.
  std::vector<double> numbers(10 * 3 * 3, 0);
  for (size_t i = 0; i < numbers.size(); i += 3) numbers[i] = static_cast<double>(i / 9 + 1);
  const Tensor made = weights.value(Tensor::from_reals(body.graph.input_types()[1], numbers));
  const double once = made.real_at(0);
  EXPECT_NE(once, 0);
  constexpr double kFeatures[] = {1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 0, 0, 0};
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(made.real_at(i / 4 * 4 * 3 * 4 + i % 4), once * kFeatures[i]) << i;
}

}  // namespace
}  // namespace hone::HONE_FILE
