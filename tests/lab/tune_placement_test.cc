#include "lab/models/tune_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lab/models/train_fusion.h"
#include "place/generate.h"
#include "tests/base/says_testing.h"
#include "tests/place/policy_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

PlaceProblem small_problem() {
  Rng rng(2);
  return make_place({.family = PlaceFamily::branches, .devices = 2, .nodes = 24}, rng);
}

TEST(TunePlacement, IsNeverWorseThanBeforeAndTheSameWithTheSameSeed) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(5)).value();
  const PlaceProblem problem = small_problem();
  const PlaceJudge judge(problem);
  PlacementTuning options;
  options.steps = 4;
  options.plans = 3;
  std::vector<double> seen;
  options.told = [&](int64_t, double value) { seen.push_back(value); };
  const TunedPlacement tuned = tune_placement(judge, policy, options).value();
  EXPECT_LE(tuned.value, tuned.before);
  EXPECT_EQ(tuned.value, judge.value(tuned.placement, PlaceGoal::step));
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(seen, std::greater<>()));
  EXPECT_EQ(seen.back(), tuned.value);
  // The weights have changed, and a second call ends with the same bits.
  const TunedPlacement again = tune_placement(judge, policy, options).value();
  const auto before = policy.weights(), after = tuned.policy.weights(),
             same = again.policy.weights();
  bool has_changed = false;
  for (size_t i = 0; i < after.size(); ++i) {
    has_changed |= !std::ranges::equal(before[i].tensor.bytes(), after[i].tensor.bytes());
    EXPECT_TRUE(std::ranges::equal(after[i].tensor.bytes(), same[i].tensor.bytes()));
  }
  EXPECT_TRUE(has_changed);
}

TEST(TunePlacement, KeepsAStartThatIsBetter) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(5)).value();
  const PlaceProblem problem = small_problem();
  const PlaceJudge judge(problem);
  const PlaceResult known =
      place(judge, {.by = "annealing", .seconds = 1e9, .trials = 2000}).value();
  PlacementTuning options;
  options.steps = 1;
  options.plans = 1;
  options.start = known.placement;
  EXPECT_LE(tune_placement(judge, policy, options)->value, known.value);
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
