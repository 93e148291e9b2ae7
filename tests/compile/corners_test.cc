#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "cost/analytic.h"
#include "cost/program_price.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/target/target_testing.h"

// Layers of real models that have plain relatives of the same arithmetic. A plan of such a layer
// costs little more than one of its relative, by the analytic price and for a target that is always
// the same.

namespace hone::HONE_FILE {
namespace {

double price_of(std::string_view text) {
  const Target target = parse_target(kSampleTarget, "t").value();
  const AnalyticCost cost(target);
  WeightTable weights;
  weights.add("w", Tensor::zeros(Type::get(DType::f32, {1024, 4096})));
  const Graph graph = prepare(parse_graph(text, {.weights = &weights}).value()).value();
  Plan open;
  open.threads = 1;
  const Plan plan = complete(graph, open, target, cost).value();
  const Program program = lower(graph, plan, target).value();
  return price(program, cost)->total();
}

TEST(Corners, AOneByOneConvOfAConcatenationIsAProduct) {
  const double conv = price_of(R"(graph @conv(%a: f32[1, 256, 28, 28], %b: f32[1, 128, 28, 28],
      %c: f32[1, 128, 28, 28], %w: f32[128, 512, 1, 1]) -> f32[1, 128, 28, 28] {
    %x = max %a, 0
    %y = max %b, 0
    %z = max %c, 0
    %all = concat %x, %y, %z {axis = 1}
    %r = conv %all, %w
    return %r
  })");
  const double product = price_of(R"(graph @dot(%a: f32[512, 784], %w: f32[128, 512])
      -> f32[128, 784] {
    %x = max %a, 0
    %r = dot %w, %x {lhs_contract = [1], rhs_contract = [0]}
    return %r
  })");
  EXPECT_LE(conv / product, 1.05);
}

TEST(Corners, AConvOfVolumesIsAConvOfImages) {
  const double volumes = price_of(R"(graph @volumes(%x: f32[1, 16, 8, 28, 28],
      %w: f32[32, 16, 3, 3, 3]) -> f32[1, 32, 8, 28, 28] {
    %y = conv %x, %w {pad_low = [1, 1, 1], pad_high = [1, 1, 1]}
    return %y
  })");
  const double images = price_of(R"(graph @images(%x: f32[1, 48, 112, 56],
      %w: f32[32, 48, 3, 3]) -> f32[1, 32, 112, 56] {
    %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
    return %y
  })");
  EXPECT_LE(volumes / images, 1.05);
}

// Gathers took seven times as long as writing the image.
TEST(Corners, AnImageThatGrowsByWholeFactorsIsWrittenOnce) {
  const double grown = price_of(R"(graph @grown(%x: f32[1, 64, 64, 64])
      -> f32[1, 64, 128, 128] {
    %y = resize %x {sizes = [1, 64, 128, 128], mode = nearest}
    return %y
  })");
  const double written = price_of(R"(graph @written(%x: f32[1, 64, 128, 128])
      -> f32[1, 64, 128, 128] {
    %y = neg %x
    return %y
  })");
  EXPECT_LE(grown / written, 1);
}

// Weights are read once for any few rows. From then on arithmetic grows with the rows.
TEST(Corners, FewRowsCostWhatTheirWeightsDo) {
  const auto rows = [](int64_t count) {
    return price_of(fmt::format(R"(graph @rows(%x: f32[{0}, 1024]) -> f32[{0}, 4096] {{
      %w = constant @w : f32[1024, 4096]
      %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}
      return %y
    }})",
                                count));
  };
  EXPECT_LE(rows(4) / rows(1), 1.1);
  EXPECT_LE(rows(8) / rows(1), 1.2);
  EXPECT_LE(rows(32) / rows(64), 0.6);
}

}  // namespace
}  // namespace hone::HONE_FILE
