#include "learn/models/train_plan_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "learn/models/plan_network.h"
#include "learn/schedule.h"
#include "learn/trainer.h"
#include "target/fingerprint.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/learn/plan_pairs_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;
using testing::Not;

const Target& target() {
  static const Target target = host_target().value();
  return target;
}

std::vector<PlanPairs> plans(DrawnPlans drawn = {}, uint64_t seed = 1) {
  drawn.target = fingerprint(target());
  return drawn_plans(drawn, seed);
}

PlanTraining small() {
  PlanTraining options;
  options.members = 2;
  options.epochs = 20;
  return options;
}

const TrainedPlans& trained() {
  static const TrainedPlans trained = train_plan_model(plans(), target(), small()).value();
  return trained;
}

TEST(TrainPlanModel, OrdersPlansOfProgramsThatItHasNotSeen) {
  int64_t ordered = 0, by_price = 0, sure = 0;
  for (const PlanChoice& choice : trained().choices) {
    EXPECT_EQ(choice.plans, 5U);
    ordered += choice.ordered;
    by_price += choice.by_price;
    sure += choice.sure;
  }
  EXPECT_GT(sure, 20);
  EXPECT_GT(ordered, sure * 9 / 10);
  EXPECT_LT(by_price, sure * 9 / 10);  // all prices are equal
}

TEST(TrainPlanModel, CountsIfItsChoicesGain) {
  const PlanModel& model = trained().model;
  EXPECT_TRUE(model.gains());
  EXPECT_GT(model.gain, 0.05);
  EXPECT_EQ(model.judged, 6);
  EXPECT_EQ(model.pairs, 30);
  EXPECT_EQ(model.programs.size(), 6U);
  EXPECT_EQ(model.prices, 5U);
}

// Choices among times that nothing explains gain as often as they lose, and losses count twice.
TEST(TrainPlanModel, DoesNotCountIfNothingIsToBeLearned) {
  EXPECT_EQ(lead_of(std::vector<PlanChoice>{
                {"a", 3, 0.2, 0.1}, {"b", 3, 0.2, -0.1}, {"c", 3, 0.2, 0.05}}),
            kNoPlanLead);
  EXPECT_EQ(lead_of(std::vector<PlanChoice>{{"a", 3, 0.2, 0.1}, {"b", 3, 0.2, 0.1}}), kNoPlanLead);
  EXPECT_EQ(lead_of(std::vector<PlanChoice>{
                {"a", 3, 0.2, 0.1}, {"b", 3, 0.015, -0.1}, {"c", 3, 0.2, 0.05}}),
            0.02);
}

// Three choices that gained 0.3 together, by times that are off by this.
double lead_with_noise(double noise) {
  std::vector<PlanChoice> choices = {{"a", 3, 0.2, 0.1}, {"b", 3, 0.2, 0.1}, {"c", 3, 0.2, 0.1}};
  for (PlanChoice& each : choices) each.noise = noise;
  return lead_of(choices);
}

TEST(TrainPlanModel, NoiseAndFamiliesCount) {
  // The sum is off by sqrt(3) noise; 1.28 times that is 0.3 for a noise of 0.135.
  EXPECT_LT(lead_with_noise(0.13), kNoPlanLead);
  EXPECT_EQ(lead_with_noise(0.14), kNoPlanLead);
  // Sizes of one program are one family.
  EXPECT_EQ(lead_of(std::vector<PlanChoice>{{"zoo:a18", 3, 0.2, 0.1},
                                            {"zoo:a34", 3, 0.2, 0.1},
                                            {"zoo:a50", 3, 0.2, 0.1},
                                            {"zoo:b", 3, 0.2, 0.1}}),
            kNoPlanLead);
  // One family gained much, the others a little less than nothing.
  EXPECT_EQ(lead_of(std::vector<PlanChoice>{
                {"a", 3, 0.2, 0.5}, {"b", 3, 0.2, -0.01}, {"c", 3, 0.2, -0.01}}),
            kNoPlanLead);
}

TEST(TrainPlanModel, DoesNotCountIfTimesAreNoise) {
  HONE_ONE_RUN_OF(5);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    PlanTraining options = small();
    options.epochs = 4;
    const TrainedPlans trained =
        train_plan_model(plans({.is_random = true}, seed), target(), options).value();
    EXPECT_FALSE(trained.model.gains()) << seed;
    EXPECT_EQ(trained.model.gain, 0);
  }
}

// Plans that the planner would not ask about teach, and are no choice.
TEST(TrainPlanModel, IsJudgedByPlansThatAreOffered) {
  std::vector<PlanPairs> data = plans();
  for (PlanPairs& each : data)
    for (size_t i = 2; i < each.plans.size(); ++i) each.is_offered[i] = false;
  PlanTraining options = small();
  options.epochs = 1;
  const TrainedPlans found = train_plan_model(data, target(), options).value();
  EXPECT_EQ(found.model.pairs, 30);
  for (size_t p = 0; p < data.size(); ++p) {
    const PlanChoice& choice = found.choices[p];
    EXPECT_EQ(choice.plans, 1U);
    EXPECT_EQ(choice.most, std::max(0.0, -double{data[p].pairs[0].ratio}));
    EXPECT_EQ(choice.sure, trained().choices[p].sure);  // all pairs order
  }
}

// A network that was trained by another scale says the same by the model's.
TEST(TrainPlanModel, PutsNetworksIntoOneScale) {
  Rng rng(4);
  PlanMember member;
  const auto draw = [&](std::vector<float>& weights, size_t count) {
    for (size_t i = 0; i < count; ++i) weights.push_back(static_cast<float>(rng.normal()) / 4);
  };
  constexpr size_t kWide = PlanMember::kWidth;
  draw(member.input, kPlanFeatures * kWide);
  draw(member.bias0, kWide);
  for (PlanMember::Round& round : member.rounds) {
    draw(round.self, kWide * kWide);
    draw(round.heard_in, kWide * kWide);
    draw(round.heard_out, kWide * kWide);
    draw(round.bias, kWide);
  }
  draw(member.output, kWide);
  PlanScale own;
  PlanModel alone, model;
  for (size_t f = 0; f < kPlanFeatures; ++f) {
    own.mean[f] = static_cast<float>(rng.normal());
    model.mean[f] = static_cast<float>(rng.normal());
    own.factor[f] = f % 3 == 0 ? 0 : 0.5F;
    model.factor[f] = f % 6 == 0 ? 0 : 2.0F;
  }
  alone.mean = own.mean;
  alone.factor = own.factor;
  alone.members = {member};
  model.members = {rescaled(member, own, model)};
  const PlanGraph plan = plans()[0].plans[0];
  EXPECT_NEAR(log_seconds(model, plan)[0], log_seconds(alone, plan)[0], 1e-5);
}

TEST(TrainPlanModel, IsTheSameOnAnyNumberOfThreads) {
  PlanTraining other = small();
  other.compile.plan.threads = 2;  // each step runs on one, whatever is asked for
  EXPECT_TRUE(train_plan_model(plans(), target(), other).value().model == trained().model);
}

// With checkpoints in a new folder, until the first network is trained.
PlanTraining broken_off(const char* name) {
  PlanTraining options = small();
  options.folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(options.folder);
  CancelToken cancel;
  options.cancel = &cancel;
  options.told = [&](std::string_view line) {
    if (line.starts_with("network 1")) cancel.cancel();
  };
  const Result<TrainedPlans> ended = train_plan_model(plans(), target(), options);
  EXPECT_EQ(ended.ok() ? ErrorCode::internal : ended.error().code(), ErrorCode::interrupted);
  options.cancel = nullptr;
  options.told = {};
  return options;
}

TEST(TrainPlanModel, GoesOnWhereItWasBrokenOff) {
  PlanTraining options = broken_off("plan_model");
  options.told = [](std::string_view line) { EXPECT_THAT(line, Not(HasSubstr("anew"))); };
  EXPECT_TRUE(train_plan_model(plans(), target(), options).value().model == trained().model);
}

TEST(TrainPlanModel, StartsAnewWithOtherData) {
  HONE_ONE_RUN_OF(5);
  PlanTraining options = broken_off("plan_model_of_others");
  std::vector<PlanPairs> others = plans();
  others[0].pairs[0].ratio += 0.1F;
  std::string told;
  options.told = [&](std::string_view line) { told += line; };
  const PlanModel model = train_plan_model(others, target(), options).value().model;
  EXPECT_THAT(told, says("other data"));
  EXPECT_TRUE(model == train_plan_model(others, target(), small()).value().model);
}

// More nodes, with features of all kinds, and edges at random: a node hears of 0 to 4 others.
void tangle(PlanGraph& plan, Rng& rng) {
  plan.edges.clear();
  plan.nodes.resize(plan.nodes.size() + rng.below(6));
  plan.share.resize(plan.nodes.size(), 0);
  const auto count = static_cast<uint32_t>(plan.nodes.size());
  for (uint32_t n = 0; n < count; ++n) {
    for (float& feature : plan.nodes[n]) feature = static_cast<float>(rng.normal());
    for (uint64_t k = rng.below(5); k > 0; --k)
      plan.edges.push_back({static_cast<uint32_t>(rng.below(count)), n});
  }
}

// Plans are made by the trained model: the network in plain C++ against its graph.
TEST(TrainPlanModel, PutsTheNetworkIntoPlainCode) {
  std::vector<PlanPairs> data = plans({.programs = 2, .plans = 3});
  Rng rng(3);
  for (PlanPairs& each : data)
    for (PlanGraph& plan : each.plans) tangle(plan, rng);
  std::vector<PlanSample> samples;
  for (const PlanPairs& each : data)
    for (const PlanPair& pair : each.pairs) samples.push_back({&each, &pair});
  const PlanScale scale = scale_of(samples);
  const PlanPairsData pairs(samples, scale);
  Trainer trainer =
      Trainer::make(
          plan_objective, pairs, target(),
          {.rate = cosine_rate(0.05, 1, 16), .loader = {.batch_size = 2}, .epochs = 8, .seed = 1})
          .value();
  ASSERT_TRUE(trainer.train().ok());
  PlanModel model;
  model.mean = scale.mean;
  model.factor = scale.factor;
  model.members = {plan_member_of(trainer.weights())};
  const std::vector<int64_t> all = {0, 1, 2, 3};
  const Batch batch = pairs.batch(all, 0).value();
  const Graph graph =
      trainer
          .frozen([](Network& net) { return std::vector{plan_log_seconds(net)}; }, types_of(batch))
          .value();
  std::vector<Tensor> inputs;
  for (ValueId input : graph.inputs()) inputs.push_back(batch.find(graph.name(input))->second);
  Compilation compiled(graph, target());
  const std::vector<Tensor> out = compiled.executable().value()->run(inputs).value();
  for (size_t i = 0; i < samples.size(); ++i)
    for (const int side : {0, 1}) {
      const PlanPair& pair = *samples[i].pair;
      const PlanGraph& plan = samples[i].program->plans[side == 0 ? pair.first : pair.second];
      EXPECT_NEAR(log_seconds(model, plan)[0], out[0].real_at(static_cast<int64_t>(2 * i) + side),
                  1e-4);
    }
}

TEST(TrainPlanModel, RefusesWhatDoesNotBelongTogether) {
  const auto refused = [](const std::vector<PlanPairs>& data,
                          const PlanTraining& options = small()) {
    return train_plan_model(data, target(), options).error().to_string();
  };
  std::vector<PlanPairs> other_target = plans(), other_prices = plans(), other_threads = plans();
  other_target[1].target = 1;
  other_prices[1].prices = 1;
  other_threads[1].threads = 2;
  EXPECT_THAT(refused(other_target), says("zoo:bnet ... another target"));
  EXPECT_THAT(refused(other_prices), says("zoo:bnet ... other prices"));
  EXPECT_THAT(refused(other_threads), says("zoo:bnet ... of 2"));
  EXPECT_THAT(refused(plans({.programs = 1})), says("1 families ... too few"));
  EXPECT_THAT(refused({}), says("too few"));
  PlanTraining one = small();
  one.members = 1;
  EXPECT_THAT(refused(plans(), one), says("1 networks"));
}

}  // namespace
}  // namespace hone::HONE_FILE
