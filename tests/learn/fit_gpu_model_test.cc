#include "learn/fit_gpu_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cost/gpu_cost.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "target/gpu_presets.h"
#include "tests/base/says_testing.h"
#include "tests/program/random_kernels.h"

// Nobody has timed kernels for these tests: times are made up from scales and factors, which
// training has to find again.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

const Target& card() {
  static const Target target = *preset_gpu("sm_90");
  return target;
}

std::shared_ptr<const KernelFacts> facts_of(const std::string& text) {
  return std::make_shared<const KernelFacts>(
      body_of_all(prepare(parse_graph(text).value()).value()));
}

// Elementwise kernels, rows and products from small to large, each by a few schedules.
std::vector<TimedKernel> kernels(const GpuModel& truth, uint64_t seed) {
  std::vector<std::shared_ptr<const KernelFacts>> all;
  Rng rng(seed);
  for (int i = 0; i < 8; ++i) {
    const int64_t rows = int64_t{1} << rng.between(3, 12), columns = rng.between(20, 4000),
                  depth = rng.between(16, 2000);
    all.push_back(facts_of(
        fmt::format("graph @g(%x: f32[{0}, {1}]) {{ %y = exp %x return %y }}", rows, columns)));
    all.push_back(facts_of(
        fmt::format("graph @g(%x: f32[{0}, {1}]) {{ %y = softmax %x {{axis = 1}} return %y }}",
                    rows, columns)));
    all.push_back(
        facts_of(fmt::format("graph @g(%x: bf16[{0}, {2}], %w: bf16[{2}, {1}]) {{ %y = dot %x, %w "
                             "{{lhs_contract = [1], rhs_contract = [0]}} return %y }}",
                             rows, columns, depth)));
  }
  const GpuCost cost(card(), std::make_shared<const GpuModel>(truth));
  std::vector<TimedKernel> timed;
  for (const auto& facts : all) {
    TimedKernel kernel{.facts = facts, .schedules = {}, .seconds = {}};
    const ScheduleSpace space(facts->body, *facts, card());
    for (int i = 0; i < 16; ++i) {
      kernel.schedules.push_back(space.sample(rng));
      kernel.seconds.push_back(cost.kernel(facts, 1)->seconds(kernel.schedules.back()));
    }
    timed.push_back(std::move(kernel));
  }
  return timed;
}

// The factor by which prices are off, at most.
double most_off(const GpuModel& model, const std::vector<TimedKernel>& all) {
  const GpuCost cost(card(), std::make_shared<const GpuModel>(model));
  double most = 0;
  for (const TimedKernel& kernel : all)
    for (size_t i = 0; i < kernel.schedules.size(); ++i) {
      const double price = cost.kernel(kernel.facts, 1)->seconds(kernel.schedules[i]);
      most = std::max(most, std::abs(std::log(price / kernel.seconds[i])));
    }
  return std::exp(most);
}

GpuModel scaled(GpuTimes scales) { return {.target = "sm_90", .kernels = 1, .scales = scales}; }

TEST(FitGpuModel, FindsTheScalesOfTerms) {
  const GpuModel truth = scaled({1.5, 2.5, 0.6, 1.3, 3});
  const FittedGpuModel fitted = fit_gpu_model(kernels(truth, 1), card()).value();
  EXPECT_EQ(fitted.model.kernels, 24);
  EXPECT_LT(fitted.loss_after, 1e-3);
  EXPECT_GT(fitted.loss_before, 0.05);
  // It says the times of kernels that it has not seen.
  EXPECT_LT(most_off(fitted.model, kernels(truth, 2)), 1.1);
  EXPECT_GT(most_off(scaled({1, 1, 1, 1, 1}), kernels(truth, 2)), 1.5);
  EXPECT_EQ(fit_gpu_model(kernels(truth, 1), card())->model, fitted.model);
}

TEST(FitGpuModel, FindsWhatIsWrongWithAnAlgorithm) {
  GpuModel truth = scaled({1, 1, 1, 1, 1});
  truth.factors["block_tiles"] = {0.5, 0, 0.1, 0, 0};
  const FittedGpuModel fitted = fit_gpu_model(kernels(truth, 3), card()).value();
  EXPECT_LT(fitted.loss_after, fitted.loss_before / 20);
  EXPECT_LT(most_off(fitted.model, kernels(truth, 4)), 1.25);
}

TEST(FitGpuModel, TimesThatThePriceKnowsChangeNothing) {
  const GpuModel truth = scaled({1, 1, 1, 1, 1});
  const FittedGpuModel fitted = fit_gpu_model(kernels(truth, 5), card()).value();
  EXPECT_LT(fitted.loss_before, 1e-12);
  EXPECT_LE(fitted.loss_after, fitted.loss_before);
  EXPECT_LT(most_off(fitted.model, kernels(truth, 6)), 1.001);
}

// They are times of other launches, with all terms of their own.
TEST(FitGpuModel, TransformsOfAWinogradAreNoTermToScale) {
  const GpuModel truth = scaled({1.5, 2.5, 0.6, 1.3, 3});
  const GpuCost cost(card(), std::make_shared<const GpuModel>(truth));
  std::vector<TimedKernel> timed;
  for (int64_t channels : {16, 32, 64, 128, 256}) {
    const Graph graph =
        parse_graph(fmt::format("graph @g(%x: f32[8, {0}, 28, 28], %w: f32[{0}, {0}, 3, 3]) {{ %y "
                                "= conv %x, %w {{winograd = 4}} return %y }}",
                                channels))
            .value();
    TimedKernel kernel{.facts = std::make_shared<const KernelFacts>(body_of_all(graph)),
                       .schedules = {},
                       .seconds = {}};
    for (int points : {2, 4})
      for (int tile : {32, 64, 128}) {
        const Schedule product = {
            .order = {0, 1, 2, 3},
            .threads = 4,
            .own = BlockTilesFields{
                .rows = tile, .columns = tile, .depth = 16, .own_rows = 4, .own_columns = 4}};
        kernel.schedules.push_back(
            {.order = {0, 1, 2, 3},
             .threads = 4,
             .own = BlockWinogradFields{.points = points, .stages = {product}}});
        kernel.seconds.push_back(cost.kernel(kernel.facts, 1)->seconds(kernel.schedules.back()));
      }
    timed.push_back(std::move(kernel));
  }
  EXPECT_LT(most_off(fit_gpu_model(timed, card())->model, timed), 1.02);
}

TEST(FitGpuModel, NeedsAGpuAndTimes) {
  EXPECT_THAT(fit_gpu_model({}, card()), refuses(ErrorCode::bad_input, "no times"));
  EXPECT_THAT(fit_gpu_model({}, Target{}), refuses(ErrorCode::bad_input, "CPU"));
}

// ---- Its text -----------------------------------------------------------------------------------

TEST(GpuModel, IsReadAsItIsWritten) {
  GpuModel model = scaled({1.5, 2, 0.5, 1, 3});
  model.factors["block_rows"] = {0.25, -0.5, 0, 1, 0.125};
  EXPECT_EQ(parse_gpu_model(print(model), "sm_90", "m").value(), model);
  EXPECT_NE(GpuCost(card(), std::make_shared<const GpuModel>(model)).version(),
            GpuCost(card()).version());
}

TEST(GpuModel, FaultsNameTheLine) {
  const std::string good = print(scaled({1, 1, 1, 1, 1}));
  const auto with = [&](std::string_view line) {
    return parse_gpu_model(good + std::string(line), "sm_90", "m");
  };
  EXPECT_THAT(parse_gpu_model("", "sm_90", "m"), refuses(ErrorCode::bad_input, "m...empty"));
  EXPECT_THAT(parse_gpu_model(good, "sm_80", "m"), refuses(ErrorCode::bad_input, "m:1...sm_80"));
  EXPECT_THAT(parse_gpu_model("prices", "sm_90", "m"),
              refuses(ErrorCode::bad_input, "m:1...gpu price on"));
  EXPECT_THAT(parse_gpu_model("gpu price on \"sm_90\" of 1 kernels by formulas 0", "sm_90", "m"),
              refuses(ErrorCode::bad_input, "m:1...other formulas"));
  EXPECT_THAT(parse_gpu_model(good.substr(0, good.find("access")), "sm_90", "m"),
              refuses(ErrorCode::bad_input, "access"));
  EXPECT_THAT(with("launch = 1"), refuses(ErrorCode::bad_input, "m:7...launch...twice"));
  EXPECT_THAT(with("speed = 1"), refuses(ErrorCode::bad_input, "m:7...speed"));
  EXPECT_THAT(with("nest = 1"), refuses(ErrorCode::bad_input, "m:7...1 numbers, not 5"));
  EXPECT_THAT(with("nest = 1 2 3 4 x"), refuses(ErrorCode::bad_input, "m:7...'x'"));
  EXPECT_THAT(with("nest = 1 2 3 4 nan"), refuses(ErrorCode::bad_input, "m:7...'nan'"));
  EXPECT_THAT(with("nest"), refuses(ErrorCode::bad_input, "m:7...NAME = NUMBERS"));
}

}  // namespace
}  // namespace hone::HONE_FILE
