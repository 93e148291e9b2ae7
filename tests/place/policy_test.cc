#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "place/generate.h"
#include "place/policy_steps.h"
#include "tests/base/says_testing.h"
#include "tests/place/policy_testing.h"
#include "tests/place/random_problem.h"

// The learned policy: its file, its view of a problem, and the placements that it makes.

namespace hone::HONE_FILE {
namespace {

using tested::random_policy_weights;
using tested::refuses;

PlacePolicy random_policy(uint64_t seed) {
  return PlacePolicy::make(random_policy_weights(seed)).value();
}

std::string file_of(std::span<const NamedTensor> weights, std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  EXPECT_TRUE(PlacePolicy::write(path, weights).ok());
  return read_file(path, 1 << 24).value();
}

Result<PlacePolicy> parsed(std::string_view text) {
  return PlacePolicy::parse(std::as_bytes(std::span(text)), "some.policy");
}

TEST(PlacePolicy, RefusesDamagedAndForeignFilesByName) {
  const std::string good = file_of(random_policy_weights(1), "good.policy");
  ASSERT_TRUE(parsed(good).ok());
  Rng rng(5);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    const size_t at = rng.below(bad.size());
    bad[at] = static_cast<char>(bad[at] ^ (1 << rng.below(8)));
    EXPECT_THAT(parsed(bad), refuses(ErrorCode::bad_input, "some.policy")) << at;
  }
  EXPECT_THAT(parsed(good.substr(0, good.size() / 2)),
              refuses(ErrorCode::bad_input, "some.policy"));
  EXPECT_THAT(parsed("nothing"), refuses(ErrorCode::bad_input, "some.policy"));
  std::string foreign = good;
  foreign.replace(foreign.find("placement policy 1"), 18, "placement policy 9");
  EXPECT_THAT(parsed(foreign), refuses(ErrorCode::bad_input, "some.policy ... policy 9"));
}

TEST(PlacePolicy, RefusesWeightsThatAreMissingOrNoNumbers) {
  std::vector<NamedTensor> weights = random_policy_weights(2);
  const std::vector<NamedTensor> fewer(weights.begin(), weights.end() - 1);
  EXPECT_THAT(PlacePolicy::make(fewer), refuses(ErrorCode::bad_input, "'trust'"));
  weights.back().tensor = Tensor::of(Type::get(DType::f32, {1}), std::span<const float>({NAN}));
  EXPECT_THAT(PlacePolicy::make(weights), refuses(ErrorCode::bad_input, "'trust' ... nan"));
}

TEST(PlacePolicy, TheOneThatComesWithHoneFits) { EXPECT_NE(shipped_policy(), nullptr); }

// The seconds of the placement in steps by a policy.
double by_steps(const PlaceProblem& problem, const PlacePolicy& policy) {
  const PlaceJudge judge(problem);
  const PlaceOptions options;
  PlaceRun run(judge, options);
  const PolicyView view(run);
  const auto made = place_by_steps(run, view, policy, policy.look(view), {.share = 0});
  return made ? judge.value(*made, PlaceGoal::step) : kCannotRun;
}

TEST(PlacePolicy, DoesNotCareHowDevicesAreNumbered) {
  int different = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem =
        make_place({.devices = 3, .nodes = 40, .two_kinds = true, .traffic = 1}, rng);
    PlaceProblem renamed = problem;
    std::ranges::reverse(renamed.system.devices);
    const PlacePolicy policy = random_policy(seed);
    const double value = by_steps(problem, policy);
    EXPECT_EQ(value, by_steps(renamed, policy)) << seed;
    different += value != by_steps(problem, random_policy(seed + 100)) ? 1 : 0;
  }
  EXPECT_GT(different, 10);  // the weights matter
}

TEST(PlacePolicy, DrawsTheSameWithTheSameSeedAndKeepsItsSteps) {
  Rng rng(3);
  const PlaceProblem problem = make_place({.devices = 4, .nodes = 70}, rng);
  const PlaceJudge judge(problem);
  const PlaceOptions options;
  PlaceRun run(judge, options);
  const PolicyView view(run);
  const PlacePolicy policy = random_policy(4);
  const PlacePolicy::Said said = policy.look(view);
  const auto drawn = [&](uint64_t seed, PolicySteps& steps) {
    Rng draw(seed);
    return *place_by_steps(run, view, policy, said, {.rng = &draw, .steps = &steps});
  };
  PolicySteps one, two;
  const DevicePlacement first = drawn(1, one);
  EXPECT_EQ(first, drawn(1, two));
  EXPECT_NE(first.device, drawn(2, two).device);
  double sum = 0;
  for (size_t r = 0; r < view.rows(); ++r) {
    EXPECT_EQ(view.device_of[one.chosen[r]], first.device[view.node_of[r]]);
    EXPECT_LE(one.log_probability[r], 0.0F);
    sum += double{one.log_probability[r]};
  }
  EXPECT_LT(sum, -1);
}

TEST(PlacePolicy, KeepsRoomCompanyAndPins) {
  int placed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const PlaceProblem problem = tested::random_place_problem({.nodes = 20, .devices = 3}, rng);
    if (!check(problem).ok()) continue;
    const PlaceJudge judge(problem);
    const PlaceOptions options;
    PlaceRun run(judge, options);
    const PolicyView view(run);
    const PlacePolicy policy = random_policy(seed);
    const PlacePolicy::Said said = policy.look(view);
    for (const auto& made : {place_by_steps(run, view, policy, said, {.share = 1}),
                             place_at_once(run, view, said, 1)}) {
      if (!made) continue;
      ++placed;
      ASSERT_TRUE(check(problem, *made).ok()) << seed;
    }
  }
  EXPECT_GT(placed, 30);
}

// A part of a known graph: its nodes in their order, its times, and what is held among them.
TEST(DrawnProblems, AreOfKnownGraphsToo) {
  Rng rng(4);
  const PlaceProblem graph = make_place({.family = PlaceFamily::training, .nodes = 120}, rng);
  const DrawnPlace drawn = {
      .shape = Shape::ring, .devices = 5, .nodes = 50, .two_kinds = true, .is_tight = true};
  const PlaceProblem part = place_on_drawn(graph, drawn, rng).value();
  EXPECT_EQ(part.nodes.size(), 50U);
  EXPECT_EQ(part.devices(), 5U);
  ASSERT_EQ(part.system.targets.size(), 2U);
  for (const PlaceNode& node : part.nodes) {
    const auto whole = std::ranges::find(graph.nodes, node.id, &PlaceNode::id);
    ASSERT_NE(whole, graph.nodes.end());
    EXPECT_EQ(node.seconds[0], whole->seconds[0]);
    EXPECT_GE(node.seconds[1], node.seconds[0]);
    EXPECT_EQ(node.together, whole->together);
  }
  size_t uses = 0;
  for (const PlaceTensor& tensor : part.tensors) {
    const int64_t maker = part.nodes[tensor.maker].id;
    const auto whole = std::ranges::find_if(
        graph.tensors, [&](const PlaceTensor& one) { return graph.nodes[one.maker].id == maker; });
    for (const uint32_t user : tensor.users) {
      const int64_t id = part.nodes[user].id;
      EXPECT_TRUE(std::ranges::any_of(whole->users,
                                      [&](uint32_t one) { return graph.nodes[one].id == id; }));
      ++uses;
    }
  }
  EXPECT_GT(uses, 30U);
  // Long nodes, those that the first target cannot run, and graphs that hold nothing.
  PlaceProblem odd = graph;
  odd.system.targets.push_back(plain_target("other", 1 << 20));
  for (PlaceNode& node : odd.nodes) {
    node.seconds = {kCannotRun, node.seconds[0]};
    node.held = 0;
  }
  odd.nodes[0].seconds[1] = kMaxPlaceSeconds;
  for (int i = 0; i < 5; ++i) {
    const PlaceProblem posed = place_on_drawn(odd, drawn, rng).value();
    for (const PlaceNode& node : posed.nodes) EXPECT_LT(node.seconds[0], kCannotRun);
  }
}

TEST(DrawnProblems, AreOfEachFamilyAndSystem) {
  for (const PlaceFamily family : kPlaceFamilies)
    for (const Shape shape : {Shape::star, Shape::ring, Shape::pairs, Shape::line, Shape::bus})
      for (const int64_t nodes : {16, 90}) {
        Rng rng(7);
        const PlaceProblem problem = make_place({.family = family,
                                                 .shape = shape,
                                                 .devices = 3,
                                                 .nodes = nodes,
                                                 .two_kinds = true,
                                                 .is_tight = true},
                                                rng);
        EXPECT_GT(problem.nodes.size(), static_cast<size_t>(nodes) / 3) << name(family);
        EXPECT_LE(problem.nodes.size(), static_cast<size_t>(nodes));
      }
}

}  // namespace
}  // namespace hone::HONE_FILE
