#include "lab/models/tune_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lab/models/train_fusion.h"
#include "place/generate.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/place/policy_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

PlaceProblem small_problem() {
  Rng rng(2);
  return make_place({.family = PlaceFamily::branches, .devices = 2, .nodes = 24}, rng);
}

bool are_same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::ranges::equal(a[i].tensor.bytes(), b[i].tensor.bytes())) return false;
  return true;
}

PlacementTuning few_steps(std::vector<double>& seen) {
  PlacementTuning options;
  options.steps = 3;
  options.plans = 3;
  options.told = [&](int64_t, double value) { seen.push_back(value); };
  return options;
}

TEST(TunePlacement, IsNeverWorseThanItsStart) {
  HONE_ONE_RUN_OF(3);
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(5)).value();
  const PlaceProblem problem = small_problem();
  const PlaceJudge judge(problem);
  std::vector<double> seen;
  PlacementTuning options = few_steps(seen);
  options.start =
      place(judge, {.by = "annealing", .seconds = 1e9, .trials = 200}).value().placement;
  const TunedPlacement tuned = tune_placement(judge, policy, options).value();
  EXPECT_LE(tuned.before, judge.value(*options.start, PlaceGoal::step));
  EXPECT_LE(tuned.value, tuned.before);
  EXPECT_EQ(tuned.value, judge.value(tuned.placement, PlaceGoal::step));
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(seen, std::greater<>()));
  EXPECT_EQ(seen.back(), tuned.value);
  EXPECT_FALSE(are_same(policy.weights(), tuned.policy.weights()));
}

TEST(TunePlacement, TheSameSeedGivesTheSameBits) {
  HONE_ONE_RUN_OF(5);
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(5)).value();
  const PlaceProblem problem = small_problem();
  const PlaceJudge judge(problem);
  std::vector<double> first, second;
  const TunedPlacement tuned = tune_placement(judge, policy, few_steps(first)).value();
  const TunedPlacement again = tune_placement(judge, policy, few_steps(second)).value();
  EXPECT_TRUE(are_same(tuned.policy.weights(), again.policy.weights()));
  EXPECT_EQ(tuned.placement, again.placement);
  EXPECT_EQ(first, second);
}

TEST(TunePlacement, RefusesWhatIsTooMuch) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(5)).value();
  const PlaceProblem problem = small_problem();
  const PlaceJudge judge(problem);
  PlacementTuning options;
  options.steps = kMostTuningSteps + 1;
  EXPECT_THAT(tune_placement(judge, policy, options), refuses(ErrorCode::usage, "51"));
  options.steps = 1;
  options.plans = int64_t{1} << 20;
  EXPECT_THAT(tune_placement(judge, policy, options), refuses(ErrorCode::limit, "24 nodes"));
}

TEST(TrainFusion, GoesOnWithTheSameBits) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(6)).value();
  FusionTraining options;
  options.steps = 6;
  options.imitated = 0.5;
  options.nodes = 24;
  options.plans = 3;
  options.save_every = 2;
  const std::vector<NamedTensor> whole = train_fusion(policy, options).value();
  ASSERT_TRUE(FusionHead::make(whole).ok());
  options.folder = std::filesystem::path(testing::TempDir()) / "fusion.training";
  std::filesystem::remove_all(options.folder);
  CancelToken cancel;
  options.compile.cancel = &cancel;
  int lines = 0;
  options.told = [&](std::string_view) {
    if (++lines == 4) cancel.cancel();
  };
  EXPECT_THAT(train_fusion(policy, options), refuses(ErrorCode::interrupted, "stopped"));
  options.compile.cancel = nullptr;
  const std::vector<NamedTensor> resumed = train_fusion(policy, options).value();
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(whole[i].tensor.bytes(), resumed[i].tensor.bytes()));
}

TEST(JudgeJoint, ComparesAllRows) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(6)).value();
  const std::vector<JointVerdicts> verdicts =
      judge_joint(policy, nullptr, {.graphs = 1, .nodes = 24, .trials = 40}).value();
  ASSERT_EQ(verdicts.size(), 2U);
  for (const JointVerdicts& all : verdicts) {
    ASSERT_GT(all.rows.size(), 8U);
    for (const JointVerdict& row : all.rows)
      if (row.row == kStagesRow) EXPECT_EQ(row.over_stages, 1);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
