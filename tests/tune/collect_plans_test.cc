#include "tune/collect_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "cost/plan_model.h"
#include "ir/text.h"
#include "learn/plan_pairs.h"
#include "target/fingerprint.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

// Without groups, what stands between the products is a kernel of its own.
Result<Graph> graph() {
  return parse_graph(
      R"(graph @g(%x: f32[64, 96], %v: f32[96, 96], %w: f32[96, 64]) -> f32[64, 64] {
  %h = dot %x, %v {lhs_contract = [1], rhs_contract = [0]}
  %a = max %h, 0
  %y = dot %a, %w {lhs_contract = [1], rhs_contract = [0]}
  return %y
})");
}

class CollectPlansTest : public testing::Test {
 protected:
  CollectPlansTest() {
    plans_.cost = std::make_shared<AnalyticCost>(target_);
    // Made-up times: the other plan takes 1.1 times as long.
    plans_.timer = [this](const Image&, const Image&, std::span<const Tensor>, const DuelOptions&) {
      ++races_;
      Rng rng(1);
      std::vector<std::vector<double>> a, b;
      for (int i = 0; i < 12; ++i) {
        a.push_back({1e-3 * std::exp(0.01 * rng.normal())});
        b.push_back({1.1e-3 * std::exp(0.01 * rng.normal())});
      }
      return Result<PlanDuel>(PlanDuel{.outcome = Outcome::measured, .times = judged(a, b)});
    };
    options_ = {
        .collector = &plans_, .plans = 3, .seed = 1, .version = "test", .cost = plans_.cost.get()};
  }
  BuiltSet build() const {
    const std::vector<NamedProgram> programs = {{"some.hone", graph}};
    return build_data_set(path(), programs, target_, options_).value();
  }
  std::string path() const { return (folder_.path() / "set").native(); }
  PlanPairs pairs() const { return read_plan_pairs(plan_pairs_path(path(), "some.hone")).value(); }

  const Target target_ = host_target().value();
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  PlanCollector plans_;
  BuildOptions options_;
  int races_ = 0;
};

TEST_F(CollectPlansTest, RunsPlansAgainstTheUsualOne) {
  const BuiltSet built = build();
  EXPECT_EQ(built.collected, 1);
  EXPECT_EQ(built.what, "plans");
  const PlanPairs pairs = this->pairs();
  EXPECT_EQ(pairs.program, "some.hone");
  EXPECT_EQ(pairs.target, fingerprint(target_));
  EXPECT_EQ(pairs.prices, prices_hash(*plans_.cost));
  ASSERT_GE(pairs.plans.size(), 2U);
  EXPECT_LE(pairs.plans.size(), 4U);
  ASSERT_EQ(pairs.pairs.size() + 1, pairs.plans.size());
  for (const PlanPair& pair : pairs.pairs) {
    EXPECT_EQ(pair.first, 0U);
    EXPECT_NEAR(pair.ratio, std::log(1.1), 0.02);
    EXPECT_GT(pair.noise, 0);
    EXPECT_LT(pair.noise, 0.02);
    EXPECT_FALSE(pairs.plans[pair.second] == pairs.plans[0]);
  }
}

TEST_F(CollectPlansTest, MeasuresNothingTwice) {
  build();
  const PlanPairs before = pairs();
  EXPECT_EQ(races_, static_cast<int>(before.pairs.size()));
  EXPECT_EQ(build().collected, 1);
  EXPECT_EQ(races_, static_cast<int>(before.pairs.size()));
  // One that lacks a pair goes on.
  PlanPairs less = before;
  less.pairs.pop_back();
  ASSERT_TRUE(write_plan_pairs(plan_pairs_path(path(), before.program), less).ok());
  build();
  EXPECT_EQ(races_, static_cast<int>(before.pairs.size()) + 1);
  EXPECT_TRUE(pairs() == before);
  // Other prices doubt other plans.
  Prices prices;
  prices.trip = 3;
  plans_.cost = std::make_shared<AnalyticCost>(target_, prices);
  build();
  EXPECT_GT(races_, static_cast<int>(before.pairs.size()) + 1);
}

TEST_F(CollectPlansTest, PassesOverPlansThatDoNotRun) {
  plans_.timer = [](const Image&, const Image&, std::span<const Tensor>, const DuelOptions&) {
    return Result<PlanDuel>(PlanDuel{.outcome = Outcome::crashed});
  };
  EXPECT_EQ(build().collected, 0);
  EXPECT_FALSE(std::filesystem::exists(plan_pairs_path(path(), "some.hone")));
}

}  // namespace
}  // namespace hone::HONE_FILE
