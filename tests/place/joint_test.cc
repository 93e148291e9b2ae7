#include "place/joint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "place/generate.h"
#include "place/text.h"
#include "tests/base/says_testing.h"
#include "tests/place/policy_testing.h"
#include "tests/place/random_problem.h"

// Fusions: the problem that they make, and decisions that are made together.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

// Fusions of all nodes with one user, that save some of what their makers take.
PlaceProblem with_fusions(PlaceProblem problem, Rng& rng) {
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    std::vector<uint32_t> users;
    for (const PlaceTensor& tensor : problem.tensors)
      if (tensor.maker == i) users.insert(users.end(), tensor.users.begin(), tensor.users.end());
    std::ranges::sort(users);
    users.erase(std::ranges::unique(users).begin(), users.end());
    if (users.size() != 1) continue;
    PlaceFusion fusion = {i, users[0], {}};
    for (const double seconds : problem.nodes[i].seconds)
      fusion.saves.push_back(seconds == kCannotRun ? 0 : seconds * rng.uniform(0, 1));
    problem.fusions.push_back(fusion);
  }
  EXPECT_TRUE(check(problem).ok());
  return problem;
}

std::vector<uint8_t> drawn_choice(const PlaceProblem& problem, Rng& rng) {
  std::vector<uint8_t> wanted;
  for (size_t k = 0; k < problem.fusions.size(); ++k) wanted.push_back(rng.chance(0.6) ? 1 : 0);
  return wanted;
}

TEST(FusedProblem, IsWhatItsDefinitionSays) {
  size_t made_of_all = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const PlaceProblem problem =
        with_fusions(tested::random_place_problem({.nodes = 14, .memory = false}, rng), rng);
    const FusedProblem fused = fused_problem(problem, drawn_choice(problem, rng));
    const size_t made = static_cast<size_t>(std::ranges::count(fused.is_made, 1));
    made_of_all += made;
    ASSERT_EQ(fused.problem.nodes.size(), problem.nodes.size() - made);
    // Nobody waits for itself, and each fused node takes its sum without what is saved.
    ASSERT_EQ(place_order(fused.problem).size(), fused.problem.nodes.size());
    for (uint32_t f = 0; f < fused.problem.nodes.size(); ++f)
      for (size_t t = 0; t < problem.system.targets.size(); ++t) {
        double sum = 0;
        int64_t held = 0;
        for (uint32_t i = 0; i < problem.nodes.size(); ++i)
          if (fused.node_of[i] == f) {
            sum += problem.nodes[i].seconds[t];
            held += problem.nodes[i].held;
          }
        for (size_t k = 0; k < problem.fusions.size(); ++k)
          if (fused.is_made[k] != 0 && fused.node_of[problem.fusions[k].user] == f)
            sum -= problem.fusions[k].saves[t];
        if (sum == kCannotRun)
          EXPECT_EQ(fused.problem.nodes[f].seconds[t], kCannotRun);
        else
          EXPECT_NEAR(fused.problem.nodes[f].seconds[t], sum, 1e-12);
        EXPECT_EQ(fused.problem.nodes[f].held, held);
      }
    // A tensor is there if someone outside of its kernel uses it.
    size_t crossing = 0;
    for (const PlaceTensor& tensor : problem.tensors)
      crossing += std::ranges::any_of(tensor.users, [&](uint32_t user) {
        return fused.node_of[user] != fused.node_of[tensor.maker];
      });
    EXPECT_EQ(fused.problem.tensors.size(), crossing);
  }
  EXPECT_GT(made_of_all, 50U);
}

TEST(FusedProblem, LeavesOutWhatNoDeviceCouldHave) {
  Rng rng(1);
  PlaceProblem problem = make_place({.family = PlaceFamily::tree, .devices = 2, .nodes = 8}, rng);
  problem.nodes[0].pinned = 0;
  problem.nodes[1].pinned = 1;
  const uint32_t user = problem.tensors[0].users[0];
  problem.fusions = {{0, user, {0.0}}, {1, user, {0.0}}};
  ASSERT_TRUE(check(problem).ok());
  const FusedProblem fused = fused_problem(problem, std::vector<uint8_t>{1, 1});
  EXPECT_EQ(fused.is_made, (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(fused.problem.nodes[fused.node_of[0]].pinned, 0);
}

TEST(FusedProblem, BoundsOfTheFastestProblemHoldForAllChoices) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = with_fusions(
        tested::random_place_problem({.nodes = 10, .company = false, .memory = false}, rng), rng);
    const PlaceProblem fastest = fastest_problem(problem);
    const PlaceBounds bounds = place_bounds(PlaceJudge(fastest));
    for (int draw = 0; draw < 5; ++draw) {
      const FusedProblem fused = fused_problem(problem, drawn_choice(problem, rng));
      const PlaceJudge judge(fused.problem);
      const DevicePlacement placement = tested::random_placement(PlaceUnits(judge), rng);
      for (const PlaceGoal goal : kPlaceGoals)
        EXPECT_GE(judge.value(placement, goal), bounds.of(goal) * (1 - 1e-9)) << seed;
    }
  }
}

PlaceProblem drawn_problem(uint64_t seed, int64_t nodes) {
  Rng rng(seed);
  return make_place(
      {.family = PlaceFamily::branches, .devices = 2, .nodes = nodes, .has_fusions = true}, rng);
}

TEST(Joint, IsNeverWorseThanItsStartAndSaysItsValue) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const PlaceProblem problem = drawn_problem(seed, 24);
    const std::vector<uint8_t> all(problem.fusions.size(), 1);
    const JointPlacement start = default_joint(problem, all, PlaceGoal::step).value();
    for (const JointMoves moves : {JointMoves{.devices = true}, JointMoves{.order = true},
                                   JointMoves{.fusions = true}, JointMoves{true, true, true}}) {
      const JointOptions options = {.trials = 300, .seed = seed};
      const JointPlacement end = walk_jointly(problem, start, moves, options);
      EXPECT_LE(end.value, start.value);
      EXPECT_EQ(end.value, joint_value(problem, end, PlaceGoal::step));
      if (!moves.devices) EXPECT_EQ(end.placement.device, start.placement.device);
      if (!moves.fusions) EXPECT_EQ(end.fused, start.fused);
      EXPECT_EQ(end.value, walk_jointly(problem, start, moves, options).value);
    }
  }
}

// All fusions, devices and orders of a small problem.
double least_of_all(const PlaceProblem& problem) {
  double least = kCannotRun;
  for (uint32_t choice = 0; choice < 1U << problem.fusions.size(); ++choice) {
    std::vector<uint8_t> wanted;
    for (size_t k = 0; k < problem.fusions.size(); ++k) wanted.push_back(choice >> k & 1);
    const FusedProblem fused = fused_problem(problem, wanted);
    const PlaceJudge judge(fused.problem);
    const auto count = static_cast<uint32_t>(fused.problem.nodes.size());
    for (uint32_t devices = 0; devices < 1U << count; ++devices) {
      DevicePlacement placement;
      for (uint32_t i = 0; i < count; ++i) placement.device.push_back(devices >> i & 1);
      placement.priority.resize(count);
      std::iota(placement.priority.begin(), placement.priority.end(), 0);
      do least = std::min(least, judge.value(placement, PlaceGoal::step));
      while (std::ranges::next_permutation(placement.priority).found);
    }
  }
  return least;
}

TEST(Joint, FindsTheBestOfAllDecisionsOfSmallProblems) {
  for (const uint64_t seed : {1U, 2U}) {
    Rng rng(seed);
    const PlaceProblem problem = make_place({.family = PlaceFamily::branches,
                                             .devices = 2,
                                             .nodes = 5,
                                             .traffic = 0.2,
                                             .has_fusions = true},
                                            rng);
    const double least = least_of_all(problem);
    const JointPlacement found = place_jointly(problem, {.trials = 2000, .seed = seed}).value();
    EXPECT_NEAR(found.value, least, 1e-9 * least) << seed;
  }
}

TEST(Joint, RowsAreOfTheSameProblem) {
  const PlaceProblem problem = drawn_problem(3, 30);
  const std::vector<JointRow> rows = joint_rows(problem, {.trials = 300}).value();
  double of_default = 0;
  for (const JointRow& row : rows)
    if (row.name == kDefaultRow) of_default = row.value;
  ASSERT_GT(of_default, 0);
  const PlaceProblem fastest = fastest_problem(problem);
  const double bound = place_bounds(PlaceJudge(fastest)).of(PlaceGoal::step);
  for (const JointRow& row : rows) {
    EXPECT_GE(row.value, bound * (1 - 1e-9)) << row.name;
    if (row.name.starts_with("all")) EXPECT_LE(row.value, of_default) << row.name;
  }
  EXPECT_TRUE(std::ranges::any_of(rows, [](const JointRow& r) { return r.name == kStagesRow; }));
}

TEST(Fusions, AreCheckedAndReadBackAsTheyWere) {
  Rng rng(5);
  PlaceProblem problem = make_place({.family = PlaceFamily::tree,
                                     .devices = 2,
                                     .nodes = 9,
                                     .two_kinds = true,
                                     .has_fusions = true},
                                    rng);
  ASSERT_FALSE(problem.fusions.empty());
  const Result<PlaceProblem> again = parse_place_text(print(problem), "p.place");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, problem);
  PlaceProblem wrong = problem;
  wrong.fusions[0].saves[0] = 2 * wrong.nodes[wrong.fusions[0].maker].seconds[0] + 1;
  EXPECT_THAT(check(wrong), refuses(ErrorCode::bad_input, "fusion 0 ... saves"));
  wrong = problem;
  wrong.fusions.push_back(wrong.fusions[0]);
  EXPECT_THAT(check(wrong), says("has a fusion already"));
  wrong = problem;
  wrong.fusions[0].user = wrong.fusions[0].maker;
  EXPECT_THAT(check(wrong), says("is not the only one that uses"));
  wrong.fusions[0].user = 99;
  EXPECT_THAT(check(wrong), says("no node 99"));
  wrong = problem;
  wrong.fusions[0].saves.pop_back();
  EXPECT_THAT(check(wrong), says("1 times ... 2 targets"));
}

std::vector<NamedTensor> head_weights(uint64_t seed) {
  std::vector<NamedTensor> weights;
  for (const auto& [name, dims] : FusionHead::shapes()) {
    Dims all;
    size_t count = 1;
    for (const int64_t dim : dims) all.push_back(dim), count *= static_cast<size_t>(dim);
    std::vector<float> values(count);
    fill_uniform(values, seed++, -0.3F, 0.3F);
    weights.push_back(
        {name, Tensor::of(Type::get(DType::f32, all), std::span<const float>(values))});
  }
  return weights;
}

TEST(FusionHead, RefusesDamagedFilesAndOtherPolicies) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(testing::TempDir()) / "fusions.head";
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(1)).value();
  const PlacePolicy other = PlacePolicy::make(tested::random_policy_weights(2)).value();
  ASSERT_TRUE(FusionHead::write(path, head_weights(3), policy).ok());
  std::string text = read_file(path, 1 << 20).value();
  const auto parsed = [&](const PlacePolicy& of) {
    return FusionHead::parse(std::as_bytes(std::span(text)), "fusions.head", of);
  };
  ASSERT_TRUE(parsed(policy).ok());
  EXPECT_THAT(parsed(other), refuses(ErrorCode::bad_input, "fusions.head ... another policy"));
  text.back() = static_cast<char>(text.back() ^ 1);
  EXPECT_THAT(parsed(policy), refuses(ErrorCode::bad_input, "fusions.head"));
  std::vector<NamedTensor> few = head_weights(3);
  few.pop_back();
  EXPECT_THAT(FusionHead::make(few), says("4 weights"));
}

TEST(FusionHead, TheOneThatComesWithHoneFitsItsPolicy) {
  ASSERT_NE(shipped_policy(), nullptr);
  EXPECT_NE(shipped_fusion_head(*shipped_policy()), nullptr);
  const PlacePolicy other = PlacePolicy::make(tested::random_policy_weights(1)).value();
  EXPECT_EQ(shipped_fusion_head(other), nullptr);
}

TEST(FusionHead, ProposesTheSameWithTheSameSeed) {
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(1)).value();
  const FusionHead head = FusionHead::make(head_weights(4)).value();
  const PlaceProblem problem = drawn_problem(2, 30);
  const auto proposed = proposed_fusions(problem, policy, head, 7);
  EXPECT_EQ(proposed, proposed_fusions(problem, policy, head, 7));
  ASSERT_EQ(proposed.size(), 4U);
  for (const std::vector<uint8_t>& one : proposed) EXPECT_EQ(one.size(), problem.fusions.size());
  // Its proposals are more starts: the result is as good as without it, or better.
  const JointOptions options = {.trials = 1, .policy = &policy, .head = &head};
  JointOptions alone = options;
  alone.asks_head = false;
  EXPECT_LE(place_jointly(problem, options)->value, place_jointly(problem, alone)->value);
}

}  // namespace
}  // namespace hone::HONE_FILE
