#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

namespace hone {
namespace {

// A 3 x 3 conv with something before and after it.
Graph random_conv(Rng& rng) {
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16};
  Builder b;
  const DType dtype = rng.pick(kTypes);
  const int64_t in = rng.between(1, 6), out = rng.between(1, 9);
  const bool is_last = rng.chance(0.3);  // channels
  const int64_t h = rng.between(3, 9), w = rng.between(3, 9), batch = rng.between(1, 3);
  Value x = b.parameter("x", dtype, is_last ? Dims{batch, h, w, in} : Dims{batch, in, h, w});
  if (rng.chance(0.3)) x = maximum(x, 0);
  const Value weights =
      b.parameter("w", dtype, is_last ? Dims{3, 3, in, out} : Dims{out, in, 3, 3});
  Value y = b.op(Opcode::conv, {x, weights},
                 {{"order", std::string(is_last ? "b01f_01io->b01f" : "bf01_oi01->bf01")},
                  {"pad_low", Ints{rng.between(0, 2), rng.between(0, 2)}},
                  {"pad_high", Ints{rng.between(0, 2), rng.between(0, 2)}}});
  if (rng.chance(0.5)) {
    const int axis = is_last ? 3 : 1;
    y = y + broadcast(b.parameter("bias", dtype, {y.dim(axis)}), y.dims(), {axis});
  }
  if (rng.chance(0.3)) y = maximum(y, 0);
  if (rng.chance(0.3)) y = transpose(y, {0, 2, 3, 1});
  if (rng.chance(0.3)) y = b.parameter("r", dtype, y.dims()) - y;
  return b.finish({y}).value();
}

void check_random(uint64_t first, uint64_t count) {
  int checked = 0, lanes = 0, divided = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(random_conv(rng));
    for (size_t i = 0; i < body.inputs.size(); ++i)
      body.inputs[i] = random_layout(body.graph.type(body.graph.inputs()[i]), rng);
    body.outputs[0] = random_layout(body.graph.type(body.graph.outputs()[0]), rng);
    donate_some(body, rng);
    Schedule schedule = random_schedule(body, Target{}, rng);
    for (int i = 0; i < 100 && schedule.algorithm() != Algorithm::winograd; ++i)
      schedule = random_schedule(body, Target{}, rng);
    ASSERT_EQ(schedule.algorithm(), Algorithm::winograd) << print(body.graph);
    SCOPED_TRACE(print(body.graph));
    check_kernel(body, schedule, random_inputs(body.graph, rng), 16);
    if (testing::Test::HasFailure()) return;
    ++checked;
    lanes += schedule.lanes.empty() ? 0 : 1;
    divided += schedule.threads > 0 ? 1 : 0;
  }
  EXPECT_GT(lanes, checked / 4);
  EXPECT_GT(divided, checked / 4);
}

TEST(Winograd, RandomConvsComputeWhatTheReferenceDoes) { check_random(0, 150); }
TEST(Winograd, DISABLED_SweepRandomConvs) { check_random(1'000'000, 20'000); }

std::string refusal(std::string_view attributes, const Schedule& schedule,
                    std::string_view dtype = "f32") {
  const std::string text = fmt::format(
      "graph @g(%x: {0}[1, 4, 8, 8], %w: {0}[4, 4, 3, 3]) {{ %y = conv %x, %w {{{1}}} return %y }}",
      dtype, attributes);
  const KernelBody body = body_of_all(parse_graph(text).value());
  const Status status = check_schedule(body, schedule, Target{});
  return status.ok() ? "" : status.error().to_string();
}

TEST(Winograd, SchedulesThatDoNotFitAreRefused) {
  const Schedule good = {.order = {0, 2, 3, 1}, .own = WinogradFields()};
  EXPECT_EQ(refusal("", good), "");
  EXPECT_EQ(refusal("pad_low = [1, 1], pad_high = [2, 0]", good), "");
  for (std::string_view attributes : {"stride = [2, 2]", "stride = [1, 2]",
                                      "kernel_dilation = [2, 1]", "input_dilation = [2, 2]"})
    EXPECT_EQ(refusal(attributes, good),
              "error: winograd is for windows of 3 x 3 with stride 1, without dilation or groups")
        << attributes;
  EXPECT_EQ(refusal("", good, "i32"), "error: winograd halves weights, which are no integers then");
  Schedule bad = good;
  bad.order = {0, 1, 2, 3};
  EXPECT_EQ(refusal("", bad), "error: dim 1 of the features is not the innermost loop");
  bad = good;
  bad.threads = 4;
  EXPECT_EQ(refusal("", bad), "error: dim 1 of the features is not the innermost loop");
  bad = good;
  bad.lanes = {{3, 4}};
  EXPECT_EQ(refusal("", bad), "error: winograd has tiles of the features, not of dim 3");
}

TEST(Winograd, TakesSixteenProductsForFourPoints) {
  const KernelBody body =
      body_of_all(parse_graph("graph @g(%x: f32[1, 8, 8, 8], %w: f32[8, 8, 3, 3]) { "
                              "%y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]} return %y }")
                      .value());
  const TileProgram program =
      build_kernel(body, {.order = {0, 2, 3, 1}, .own = WinogradFields()}, "k").value();
  const std::string text = print(program);
  size_t products = 0;
  for (size_t at = text.find("fma"); at != std::string::npos; at = text.find("fma", at + 1))
    ++products;
  EXPECT_EQ(products, 16U) << text;
  EXPECT_NE(text.find("shared @weights: f32[16, 8, 8]"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone
