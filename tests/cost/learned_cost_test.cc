#include "cost/learned_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/analytic_kernel.h"
#include "ir/text.h"
#include "kernel/kernel_kind.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "tests/base/allocations.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/program/random_kernels.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

Target target() { return parse_target(kSampleTarget, "t").value(); }

Graph graph() {
  return prepare(parse_graph(R"(graph @product(%x: f32[40, 16], %w: f32[16, 48]) -> f32[40, 48] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = max %h, 0
  return %y
})")
                     .value())
      .value();
}

std::shared_ptr<const KernelFacts> facts() {
  const Graph product = graph();
  std::vector<NodeId> nodes;
  for (NodeId n : product.nodes())
    if (product.opcode(n) != Opcode::parameter && product.opcode(n) != Opcode::constant)
      nodes.push_back(n);
  return std::make_shared<const KernelFacts>(body_of(product, nodes, {}));
}

std::shared_ptr<const KernelModel> model(const std::function<void(KernelModel&)>& change = {}) {
  KernelModel model = random_model(target(), 1);
  model.prices.trip = 3;
  if (change) change(model);
  return std::make_shared<const KernelModel>(std::move(model));
}

// Networks that all say the same.
std::shared_ptr<const KernelModel> agreeing(double lead, uint64_t seed = 1) {
  KernelModel drawn = random_model(target(), seed);
  drawn.members = {drawn.members[0], drawn.members[0], drawn.members[0]};
  drawn.lead = lead;
  return std::make_shared<const KernelModel>(std::move(drawn));
}

// Two schedules by the same algorithm, the first of which is much cheaper by every network.
std::pair<Schedule, Schedule> far_apart(const LearnedCost& cost) {
  const auto kernel = cost.kernel(facts(), 1);
  Rng rng(5);
  std::optional<Schedule> least, most;
  for (int i = 0; i < 200; ++i) {
    const Schedule each = random_schedule(facts()->body, target(), rng);
    if (each.algorithm() != Algorithm::nest) continue;
    if (!least || kernel->seconds(each) < kernel->seconds(*least)) least = each;
    if (!most || kernel->seconds(each) > kernel->seconds(*most)) most = each;
  }
  return {*least, *most};
}

struct Priced {
  double learned, analytic, residual;
};
std::vector<Priced> priced(const std::shared_ptr<const KernelModel>& model, int64_t threads = 1) {
  const LearnedCost cost(target(), model);
  AnalyticKernel one(facts(), target(), model->prices, 1);
  AnalyticKernel analytic(facts(), target(), model->prices, threads);
  const FastModel fast(*model);
  std::vector<Priced> all;
  Rng rng(3);
  std::vector<Schedule> schedules;
  for (int i = 0; i < 50; ++i) schedules.push_back(random_schedule(facts()->body, target(), rng));
  std::vector<double> seconds(schedules.size());
  cost.kernel(facts(), threads)->price(schedules, 1, seconds);
  for (size_t i = 0; i < schedules.size(); ++i) {
    Features features;
    one.describe(schedules[i], features);
    const double price = analytic.seconds(schedules[i]);
    FastModel::Said said;
    fast.run({&features, 1}, {&said, 1});
    all.push_back(
        {seconds[i], price,
         model->level("dot") + double{said.mean} + model->caution * double{said.deviation}});
  }
  return all;
}

TEST(LearnedCost, CorrectsTheAnalyticPrice) {
  for (int64_t threads : {1, 4})
    for (const Priced& each : priced(model(), threads))
      EXPECT_NEAR(each.learned, each.analytic * std::exp(each.residual), 1e-5 * each.learned);
}

TEST(LearnedCost, LeavesUnknownKernelsToTheAnalyticPrice) {
  const auto far = model([](KernelModel& model) { model.reach = 0.1; });
  const auto unseen = model([](KernelModel& model) { model.seen = {{"conv gemm", 100}}; });
  for (const auto& each : {far, unseen})
    for (const Priced& price : priced(each)) EXPECT_EQ(price.learned, price.analytic);
  EXPECT_THAT(LearnedCost(target(), far).check_knows(*facts(), 1).error().to_string(),
              HasSubstr("from the nearest"));
  EXPECT_THAT(LearnedCost(target(), unseen).check_knows(*facts(), 1).error().to_string(),
              HasSubstr("kind 'dot'"));
  const auto two = model([](KernelModel& model) { model.threads = 2; });
  EXPECT_THAT(LearnedCost(target(), two).check_knows(*facts(), 1).error().to_string(),
              HasSubstr("on 2 threads, not on 1"));
  EXPECT_TRUE(LearnedCost(target(), model()).check_knows(*facts(), 1).ok());
}

// Four products at a time: what a model knows of others says nothing about them.
TEST(LearnedCost, ProductsOfBytesAreAKindOfTheirOwn) {
  const auto facts_of = [](std::string_view rhs) {
    const Graph graph =
        parse_graph(fmt::format(R"(graph @g(%x: u8[40, 16], %w: {}[16, 48]) -> i32[40, 48] {{
  %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0], accumulate = i32}}
  return %y
}})",
                                rhs))
            .value();
    return KernelFacts(body_of_all(graph));
  };
  EXPECT_EQ(kernel_kind(facts_of("i8"), Algorithm::gemm), "bytes");
  EXPECT_EQ(kernel_kind(facts_of("u8"), Algorithm::gemm), "dot");
  const auto others = model([](KernelModel& model) { model.seen = {{"dot gemm", 100}}; });
  EXPECT_THAT(LearnedCost(target(), others).check_knows(facts_of("i8"), 1).error().to_string(),
              HasSubstr("kind 'bytes'"));
}

TEST(LearnedCost, TakesTheDearerPriceOutsideOfWhatWasSeen) {
  const auto narrow = model([](KernelModel& model) { model.high.fill(0); });
  int learned = 0, analytic = 0;
  for (const Priced& each : priced(narrow)) {
    const double corrected = each.analytic * std::exp(each.residual);
    EXPECT_NEAR(each.learned, std::max(each.analytic, corrected), 1e-5 * each.learned);
    ++(corrected > each.analytic ? learned : analytic);
  }
  EXPECT_GT(learned + analytic, 0);
  // So do schedules by an algorithm that was not.
  const auto gemms = model([](KernelModel& model) { model.seen.erase("dot nest"); });
  for (const Priced& each : priced(gemms))
    EXPECT_GE(each.learned, each.analytic * std::min(1.0, std::exp(each.residual)) * (1 - 1e-6));
}

// A file that nobody has damaged may have such weights.
TEST(LearnedCost, IsTheAnalyticPriceWhereNetworksSayNoNumber) {
  const auto huge = model([](KernelModel& model) {
    for (ModelMember& member : model.members) {
      std::ranges::fill(member.input, 3e38F);
      std::ranges::fill(member.middle, -3e38F);
    }
  });
  for (const Priced& each : priced(huge)) EXPECT_EQ(each.learned, each.analytic);
}

TEST(LearnedCost, HasAVersionOfItsWeights) {
  const LearnedCost a(target(), model()), b(target(), model());
  const LearnedCost c(target(), model([](KernelModel& model) { model.members[0].bias3 += 1; }));
  const LearnedCost d(target(), model(), std::make_shared<AnalyticCost>(target()));
  EXPECT_EQ(a.version(), b.version());
  EXPECT_NE(a.version(), c.version());
  EXPECT_NE(a.version(), d.version());
  const LearnedCost e(target(), model(), nullptr, "", 0.95);
  EXPECT_NE(a.version(), e.version());
}

// A planner with a baseline takes another schedule only if that is surely cheaper.
TEST(LearnedCost, KeepsThePlannersScheduleUnlessAnotherOneIsSurelyCheaper) {
  const auto analytic = std::make_shared<AnalyticCost>(target());
  Plan one_thread;
  one_thread.threads = 1;
  const Plan by_analytic = complete(graph(), one_thread, target(), *analytic).value();
  const auto plan = [&](double lead, uint64_t seed, double sureness) {
    const LearnedCost cost(target(), agreeing(lead, seed), analytic, "", sureness);
    return complete(graph(), one_thread, target(), cost).value();
  };
  int changed = 0, changed_surely = 0;
  for (uint64_t seed = 1; seed < 12; ++seed) {
    EXPECT_TRUE(plan(kNoLead, seed, 0.5).schedule == by_analytic.schedule);
    changed += plan(0, seed, 0.5).schedule == by_analytic.schedule ? 0 : 1;
    changed_surely += plan(0, seed, 0.999).schedule == by_analytic.schedule ? 0 : 1;
  }
  EXPECT_GT(changed, 0);
  EXPECT_LE(changed_surely, changed);
  // On kernels that the model does not know, the baseline decides, whatever its coefficients say.
  const auto two = model([](KernelModel& model) {
    model.threads = 2;
    model.lead = 0;
    model.prices.sum_latency = 300;
  });
  const LearnedCost cost(target(), two, analytic);
  EXPECT_TRUE(complete(graph(), one_thread, target(), cost).value() == by_analytic);
  const AnalyticCost fitted(target(), two->prices);
  EXPECT_FALSE(complete(graph(), one_thread, target(), fitted).value() == by_analytic);
}

TEST(LearnedCost, SaysWhatAPriceStandsOn) {
  Rng rng(3);
  for (const Schedule& schedule : {random_schedule(facts()->body, target(), rng),
                                   random_schedule(facts()->body, target(), rng)})
    for (int64_t threads : {1, 4}) {
      const LearnedCost cost(target(), model(), nullptr, "somewhere");
      EXPECT_EQ(cost.place(), "somewhere");
      const LearnedCost::Trust trust = cost.trust(facts(), schedule, threads);
      EXPECT_TRUE(trust.knows.ok());
      EXPECT_EQ(trust.is_inside, schedule.algorithm() != Algorithm::winograd);
      EXPECT_EQ(trust.bound, 0.4);
      const double seconds = cost.kernel(facts(), threads)->seconds(schedule);
      const double residual = trust.residual + model()->caution * trust.deviation;
      EXPECT_NEAR(seconds, trust.analytic * std::exp(residual), 1e-5 * seconds);
    }
  const auto far = model([](KernelModel& model) { model.reach = 0.1; });
  const LearnedCost::Trust none =
      LearnedCost(target(), far).trust(facts(), random_schedule(facts()->body, target(), rng), 1);
  EXPECT_THAT(none.knows.error().to_string(), HasSubstr("from the nearest"));
}

TEST(LearnedCost, SaysHowManyAreWorthMeasuring) {
  const auto worth = [](const std::function<void(KernelModel&)>& change) {
    return LearnedCost(target(), model(change)).kernel(facts(), 1)->worth_measuring();
  };
  EXPECT_EQ(worth({}), 16);  // the bound of dots is 2 % there
  EXPECT_EQ(worth([](KernelModel& model) { model.bounds.pop_back(); }), 16);
  EXPECT_EQ(worth([](KernelModel& model) { model.bounds[1].slower[2] = 0.01; }), 3);
  EXPECT_EQ(worth([](KernelModel& model) { model.bounds[1].slower.assign(8, 0.5); }), 24);
  EXPECT_EQ(worth([](KernelModel& model) { model.bounds.clear(); }), std::nullopt);
  EXPECT_EQ(worth([](KernelModel& model) { model.reach = 0; }), std::nullopt);
}

TEST(LearnedCost, IsSureOfWhatAllNetworksSay) {
  const LearnedCost cost(target(), agreeing(0));
  const auto [least, most] = far_apart(cost);
  const auto kernel = cost.kernel(facts(), 1);
  EXPECT_TRUE(kernel->is_surely_cheaper(least, most));
  EXPECT_FALSE(kernel->is_surely_cheaper(most, least));
  EXPECT_FALSE(kernel->is_surely_cheaper(least, least));
  using Knows = PricedKernel::Knows;
  EXPECT_EQ(kernel->knows(), Knows::choices);
  // A lead that it does not have, and a kernel that it does not know.
  const auto far = model([](KernelModel& model) { model.reach = 0; });
  for (const auto& unsure : {agreeing(kNoLead), far}) {
    const auto priced = LearnedCost(target(), unsure).kernel(facts(), 1);
    EXPECT_FALSE(priced->is_surely_cheaper(least, most));
    EXPECT_EQ(priced->knows(), Knows::price);
  }
}

// A kernel that it does not know has the price of the baseline if coefficients are the same.
TEST(LearnedCost, KnowsNothingOfAKernelThatTheBaselinePricesAlike) {
  const auto far = model([](KernelModel& model) { model.reach = 0; });
  const auto knows_beside = [&](const Prices& prices) {
    const auto baseline = std::make_shared<AnalyticCost>(target(), prices);
    return LearnedCost(target(), far, baseline).kernel(facts(), 1)->knows();
  };
  EXPECT_EQ(knows_beside(far->prices), PricedKernel::Knows::nothing);
  EXPECT_EQ(knows_beside({}), PricedKernel::Knows::price);
}

// How many pairs of 40 schedules are sure.
int sure_pairs(const LearnedCost& cost) {
  Rng rng(7);
  std::vector<Schedule> all;
  for (int i = 0; i < 40; ++i) all.push_back(random_schedule(facts()->body, target(), rng));
  const auto kernel = cost.kernel(facts(), 1);
  int sure = 0;
  for (const Schedule& a : all)
    for (const Schedule& b : all) sure += kernel->is_surely_cheaper(a, b) ? 1 : 0;
  return sure;
}

// Networks that say these multiples of the logarithm of the price: their mean is that of none.
std::shared_ptr<const KernelModel> saying(const std::array<float, 3>& multiples) {
  KernelModel model = *agreeing(0);
  Features features;
  const auto seconds = static_cast<size_t>(&features.seconds - features.all().data());
  for (size_t m = 0; m < model.members.size(); ++m) {
    ModelMember& member = model.members[m];
    for (auto* numbers :
         {&member.input, &member.bias1, &member.middle, &member.bias2, &member.output})
      std::ranges::fill(*numbers, 0.0F);
    member.input[seconds * model.width1] = 1;
    member.middle[0] = 1;
    member.output[0] = multiples[m];
    member.bias3 = 0;
  }
  return std::make_shared<const KernelModel>(std::move(model));
}

TEST(LearnedCost, IsNotSureWhereNetworksDisagree) {
  const auto pairs = [](const std::array<float, 3>& multiples) {
    return sure_pairs(LearnedCost(target(), saying(multiples), nullptr, "", 0.99999));
  };
  EXPECT_GT(pairs({0, 0, 0}), 0);
  EXPECT_EQ(pairs({0.2F, 0, -0.2F}), 0);
}

// It may have learned from the very kernel.
TEST(LearnedCost, DoubtsLessOfKernelsThatItHasSeen) {
  const auto seen_with = [](double lead) {
    KernelModel model = *agreeing(lead);
    const Features features = KernelPrice(*facts(), target(), model.prices, 1).of_kernel();
    for (size_t f = 0; f < kKernelFeatures; ++f)
      model.kernels[0][f] = (features.all()[f] - model.mean[f]) / model.deviation[f];
    return std::make_shared<const KernelModel>(std::move(model));
  };
  EXPECT_GT(sure_pairs(LearnedCost(target(), seen_with(0))),
            sure_pairs(LearnedCost(target(), agreeing(0))));
  EXPECT_EQ(sure_pairs(LearnedCost(target(), seen_with(kNoLead))), 0);
}

// On a processor that it has not seen all networks are further off together.
TEST(LearnedCost, DoubtsMoreOnAProcessorThatItHasNotSeen) {
  KernelModel abroad = *agreeing(0);
  abroad.own = 0;
  const int there = sure_pairs(LearnedCost(target(), std::make_shared<KernelModel>(abroad)));
  EXPECT_GT(there, 0);
  EXPECT_LT(there, sure_pairs(LearnedCost(target(), agreeing(0))));
}

TEST(LearnedCost, VotesAreThoseOfItsNetworks) {
  const LearnedCost cost(target(), model());
  Rng rng(3);
  int inside = 0;
  for (int i = 0; i < 20; ++i) {
    const Schedule schedule = random_schedule(facts()->body, target(), rng);
    const Votes votes = cost.kernel(facts(), 1)->votes(schedule);
    EXPECT_GT(votes.variance, 0);
    if (!cost.trust(facts(), schedule, 1).is_inside) continue;
    ++inside;
    ASSERT_EQ(votes.seconds.size(), model()->members.size());
    double mean = 0;
    for (double each : votes.seconds) mean += std::log(each) / 3;
    const LearnedCost::Trust trust = cost.trust(facts(), schedule, 1);
    EXPECT_NEAR(mean, std::log(trust.analytic) + trust.residual, 1e-4);
  }
  EXPECT_GT(inside, 0);
  const auto far = model([](KernelModel& model) { model.reach = 0; });
  const Votes unknown = LearnedCost(target(), far).kernel(facts(), 1)->votes(plain_nest(2));
  EXPECT_EQ(unknown.seconds.size(), 1U);
  EXPECT_GT(unknown.variance, 0);
}

// ---- Many schedules ----------------------------------------------------------------------------

// Schedules of the kernel, chains of its product and what follows among them.
std::vector<Schedule> drawn_schedules() {
  std::vector<Schedule> all;
  Rng rng(7);
  while (all.size() < 300) all.push_back(random_schedule(facts()->body, target(), rng));
  for (const Algorithm each : {Algorithm::nest, Algorithm::gemm, Algorithm::chain})
    EXPECT_GT(std::ranges::count(all, each, &Schedule::algorithm), 10) << name(each);
  return all;
}

TEST(LearnedCost, PricesManySchedulesAsOneByOne) {
  const LearnedCost cost(target(), model());
  const std::vector<Schedule> schedules = drawn_schedules();
  const auto many = cost.kernel(facts(), 1), single = cost.kernel(facts(), 1);
  std::vector<double> seconds(schedules.size());
  many->price(schedules, INFINITY, seconds);
  for (size_t i = 0; i < schedules.size(); ++i)
    EXPECT_EQ(seconds[i], single->seconds(schedules[i])) << print(schedules[i]);
}

// All that a kernel's schedules need is found when they are first asked about.
TEST(LearnedCost, PricesSchedulesWithoutAllocating) {
#ifndef HONE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations cannot be counted here";
#endif
  const LearnedCost cost(target(), model());
  const std::vector<Schedule> schedules = drawn_schedules();
  const auto kernel = cost.kernel(facts(), 1);
  std::vector<double> seconds(schedules.size());
  kernel->price(schedules, INFINITY, seconds);
  allocations = 0;
  is_counting = true;
  kernel->price(schedules, INFINITY, seconds);
  is_counting = false;
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
