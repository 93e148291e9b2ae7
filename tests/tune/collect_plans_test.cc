#include "tune/collect_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/rng.h"
#include "cost/analytic.h"
#include "cost/plan_model.h"
#include "ir/text.h"
#include "learn/plan_pairs.h"
#include "planner/few_plans.h"
#include "rewrite/prepare.h"
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
  less.tried = {};
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

TEST_F(CollectPlansTest, OtherOptionsAddPlansToThoseThatHaveATime) {
  options_.plans = 1;
  build();
  const PlanPairs one = pairs();
  ASSERT_EQ(one.pairs.size(), 1U);
  EXPECT_EQ(one.tried, (TriedPlans{.seed = 1, .plans = 1}));
  options_.plans = 3;
  build();
  const PlanPairs more = pairs();
  EXPECT_GT(more.pairs.size(), 1U);
  EXPECT_EQ(more.pairs[0], one.pairs[0]);
  EXPECT_EQ(races_, static_cast<int>(more.pairs.size()));
  // Fewer plans are wanted: all others stay.
  options_.plans = 1;
  options_.seed = 7;
  build();
  EXPECT_EQ(races_, static_cast<int>(more.pairs.size()));
  EXPECT_EQ(pairs().pairs.size(), more.pairs.size());
  EXPECT_EQ(pairs().tried.seed, 7);
}

// Choices of a model are judged by plans that it would be asked about.
TEST_F(CollectPlansTest, SaysWhichPlansTheModelWouldBeAskedAbout) {
  build();
  const Graph ready = prepare(graph().value()).value();
  Plan open;
  open.threads = 1;
  std::vector<PlanGraph> asked;
  const std::vector<Plan> quick =
      few_plans(ready, open, target_, *plans_.cost, quick_variants({})).value();
  for (const Plan& plan : quick) {
    asked.push_back(described_plan(ready, plan, target_, *plans_.cost).value());
    asked.back().seconds = double{static_cast<float>(asked.back().seconds)};
  }
  std::erase_if(asked, [usual = asked[0].seconds](const PlanGraph& each) {
    return each.seconds > kWorthAsking * usual;
  });
  const PlanPairs pairs = this->pairs();
  ASSERT_EQ(pairs.is_offered.size(), pairs.plans.size());
  for (size_t i = 0; i < pairs.plans.size(); ++i)
    EXPECT_EQ(pairs.is_offered[i], std::ranges::count(asked, pairs.plans[i]) > 0) << i;
}

TEST_F(CollectPlansTest, PassesOverAPlanThatFailsToRace) {
  const PlanTimer timer = plans_.timer;
  int calls = 0;
  plans_.timer = [&](const Image& a, const Image& b, std::span<const Tensor> inputs,
                     const DuelOptions& options) -> Result<PlanDuel> {
    if (++calls == 1) return bad_input("no such kernel");
    return timer(a, b, inputs, options);
  };
  const BuiltSet built = build();
  EXPECT_TRUE(built.left_out.empty());
  EXPECT_EQ(built.collected, 1);
  EXPECT_EQ(pairs().pairs.size() + 2, pairs().plans.size());
  EXPECT_EQ(build().collected, 1);  // and does not try it again
  EXPECT_EQ(calls, races_ + 1);
}

// A share of the time is for drawing: after it, plans that were drawn run.
TEST_F(CollectPlansTest, DrawsAsLongAsItsShareOfTheTime) {
  options_.plans = 1'000'000;
  DataSet set = DataSet::make(path(), {.target = target_}).value();
  int asked = 0;
  MeasuredKernels known(&set.log(), target_, "test");
  const CollectedPlans found =
      plans_
          .collect(set, "some.hone", prepare(graph().value()).value(), target_, known, options_,
                   [&](double share) { return share < 1 && ++asked > 25; })
          .value();
  EXPECT_EQ(asked, 26);  // each heuristic alone, and some more
  EXPECT_FALSE(found.is_done);
  EXPECT_GT(found.whole, 0U);
  EXPECT_EQ(pairs().tried, TriedPlans());
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
