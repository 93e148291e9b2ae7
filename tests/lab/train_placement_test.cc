#include "lab/models/train_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "ir/reference/evaluate.h"
#include "lab/models/compiled_policy.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/place/policy_testing.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using tested::refuses;

constexpr PlacementSizes kSmall = {.nodes = 128, .devices = 4, .edges = 300, .plans = 2};

struct Game {
  PolicyView view;
  PlacePolicy::Said said;
  PlacementLesson lesson;
};

Game game_of(const PlaceJudge& judge, const PlacePolicy& policy) {
  const PlaceOptions options;
  PlaceRun run(judge, options);
  Game game = {PolicyView(run), {}, {}};
  game.said = policy.look(game.view);
  Rng rng(2);
  EXPECT_TRUE(place_by_steps(run, game.view, policy, game.said,
                             {.rng = &rng, .steps = &game.lesson.steps}));
  return game;
}

// More rows than a segment has, so that one hears the other.
TEST(PlacementNetwork, SaysWhatPlainCodeSays) {
  const std::vector<NamedTensor> weights = tested::random_policy_weights(3);
  const PlacePolicy policy = PlacePolicy::make(weights).value();
  Rng rng(1);
  const PlaceProblem problem = make_place(
      {.family = PlaceFamily::branches, .devices = 3, .nodes = 100, .two_kinds = true}, rng);
  const PlaceJudge judge(problem);
  const Game game = game_of(judge, policy);
  ASSERT_GT(game.view.rows(), PolicyShape::kSegment);
  const std::vector<uint32_t> target(game.view.rows());
  const Batch batch =
      placement_batch(game.view, kSmall, std::span(&game.lesson, 1), target).value();
  const BatchTypes types = types_of(batch);
  Builder b("network");
  Network net(b, Network::Mode::evaluation, types, &weights);
  const PlacementHeads heads = placement_heads(net);
  const Graph graph = b.finish({heads.once, heads.order, heads.score}).value();
  std::vector<Tensor> inputs;
  for (const Network::Port& port : net.ports()) inputs.push_back(batch.find(port.name)->second);
  const std::vector<Tensor> said = evaluate(graph, inputs).value();
  const size_t ranks = game.view.ranks(), wide = static_cast<size_t>(kSmall.devices);
  for (size_t r = 0; r < game.view.rows(); ++r) {
    EXPECT_NEAR(said[1].real_at(static_cast<int64_t>(r)), double{game.said.order[r]}, 1e-4);
    std::vector<float> scores(ranks);
    policy.score(game.said, r,
                 std::span(game.lesson.steps.features)
                     .subspan(r * ranks * PolicyShape::kStep, ranks * PolicyShape::kStep),
                 scores);
    for (size_t d = 0; d < ranks; ++d) {
      const auto at = static_cast<int64_t>(r * wide + d);
      EXPECT_NEAR(said[0].real_at(at), double{game.said.once[r * ranks + d]}, 1e-3);
      if (game.lesson.steps.can[r * ranks + d] != 0)
        EXPECT_NEAR(said[2].real_at(at), double{scores[d]}, 1e-3);
    }
  }
}

// The program that hone makes of the network says what plain code says, and plain code takes over
// where a problem is larger than the program.
TEST(CompiledPolicy, SaysWhatPlainCodeSays) {
  HONE_ONE_RUN_OF(2);
  const PlacePolicy policy = PlacePolicy::make(tested::random_policy_weights(3)).value();
  Rng rng(1);
  const PlaceProblem small = make_place({.devices = 3, .nodes = 150, .two_kinds = true}, rng);
  const PlaceProblem large = make_place({.devices = 3, .nodes = 400, .two_kinds = true}, rng);
  std::optional<PlacePolicy> compiled;
  for (const PlaceProblem* problem : {&small, &large}) {
    const PlaceJudge judge(*problem);
    const PlaceOptions options;
    PlaceRun run(judge, options);
    const PolicyView view(run);
    if (!compiled) {
      ASSERT_GT(view.rows(), 2 * PolicyShape::kSegment);
      compiled = compiled_policy(policy, view, sizes_of(view), {}).value();
    }
    const PlacePolicy::Said plain = policy.look(view), said = compiled->look(view);
    const auto expect_near = [](std::span<const float> a, std::span<const float> b) {
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3) << i;
    };
    expect_near(said.once, plain.once);
    expect_near(said.order, plain.order);
    expect_near(said.state, plain.state);
    expect_near(said.node, plain.node);
    expect_near(said.device, plain.device);
    if (problem == &large) EXPECT_EQ(said.once, plain.once);
  }
}

TEST(PlacementNetwork, RefusesProblemsLargerThanABatch) {
  Rng rng(1);
  const PlaceProblem problem = make_place({.devices = 6, .nodes = 60}, rng);
  const PlaceJudge judge(problem);
  const PlaceOptions options;
  PlaceRun run(judge, options);
  EXPECT_THAT(placement_batch(PolicyView(run), kSmall, {}, {}),
              refuses(ErrorCode::limit, "6 devices"));
}

PlacementTraining small() {
  PlacementTraining options;
  options.steps = 6;
  options.imitated = 0.5;
  options.sizes = kSmall;
  options.seed = 4;
  options.save_every = 2;
  Rng rng(9);
  options.graphs = {make_place({.family = PlaceFamily::training, .nodes = 200}, rng)};
  options.first_weights = tested::random_policy_weights(8, 0.1F);
  return options;
}

TEST(TrainPlacement, GoesOnWithTheSameBits) {
  HONE_ONE_RUN_OF(2);
  const std::vector<NamedTensor> whole = train_placement(small()).value();
  ASSERT_TRUE(PlacePolicy::make(whole).ok());
  PlacementTraining options = small();
  options.folder = fs::path(testing::TempDir()) / "place.training";
  fs::remove_all(options.folder);
  CancelToken cancel;
  options.compile.cancel = &cancel;
  int lines = 0;
  options.told = [&](std::string_view) {
    if (++lines == 4) cancel.cancel();  // behind the fourth step: copies, then samples
  };
  EXPECT_THAT(train_placement(options), refuses(ErrorCode::interrupted, "stopped"));
  options.compile.cancel = nullptr;
  PlacementTraining other = options;
  other.graphs.clear();
  EXPECT_THAT(train_placement(other), refuses(ErrorCode::bad_input, "seed"));
  const std::vector<NamedTensor> resumed = train_placement(options).value();
  EXPECT_EQ(lines, 6);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(whole[i].tensor.bytes(), resumed[i].tensor.bytes()))
        << whole[i].name;
}

TEST(InOrderOfUse, EarlierNodesHaveTheFirstOfEqualDevices) {
  Rng rng(1);
  const PlaceProblem problem = make_place(
      {.family = PlaceFamily::recurrent, .devices = 3, .nodes = 30, .two_kinds = true}, rng);
  const PlaceJudge judge(problem);
  DevicePlacement placement;
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    placement.device.push_back(i < 10 ? 1U : i < 20 ? 2U : 0U);
  const DevicePlacement moved = in_order_of_use(judge, placement);
  EXPECT_EQ(moved.device.front(), 0U);
  EXPECT_EQ(moved.device[15], 2U);  // the only one of its kind
  EXPECT_EQ(moved.device.back(), 1U);
  EXPECT_EQ(judge.value(moved, PlaceGoal::load), judge.value(placement, PlaceGoal::load));
}

}  // namespace
}  // namespace hone::HONE_FILE
