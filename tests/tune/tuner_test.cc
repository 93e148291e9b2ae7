#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "ir/text.h"
#include "target/fingerprint.h"
#include "tests/base/share_testing.h"
#include "tests/tune/trusted_price_testing.h"
#include "tune/best_plan.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

const Target& target() {
  static const Target target = host_target().value();
  return target;
}

// ---- Two plans ----------------------------------------------------------------------------------

constexpr std::string_view kExp = "graph @g(%x: f32[64, 64]) { %y = exp %x return %y }";

Image image_of(std::string_view text) {
  Compilation compilation(parse_graph(text).value(), target());
  return **compilation.image();
}

TEST(PlanDuel, MeasuresInTurnsWhatComputesTheSame) {
  const Image image = image_of(kExp);
  const std::vector<Tensor> inputs = random_inputs(parse_graph(kExp).value(), 1).value();
  const PlanDuel same = duel(image, image, inputs, {.seconds = 0.1}).value();
  EXPECT_EQ(same.outcome, Outcome::measured) << same.detail;
  EXPECT_TRUE(same.times.interval);
  EXPECT_GT(same.gain(), 0);
}

TEST(PlanDuel, OtherOutputsAreWrong) {
  const Image image = image_of(kExp);
  const Image other = image_of("graph @g(%x: f32[64, 64]) { %y = tanh %x return %y }");
  const std::vector<Tensor> inputs = random_inputs(parse_graph(kExp).value(), 1).value();
  const PlanDuel fight = duel(image, other, inputs, {.seconds = 0.1}).value();
  EXPECT_EQ(fight.outcome, Outcome::wrong);
  EXPECT_THAT(fight.detail, HasSubstr("output 0"));
  EXPECT_FALSE(fight.is_faster());
  EXPECT_EQ(fight.gain(), 0);
}

// Less time than an interval needs is told, and is over soon.
TEST(PlanDuel, ShortTimeIsNoDuel) {
  const Image image = image_of(kExp);
  const std::vector<Tensor> inputs = random_inputs(parse_graph(kExp).value(), 1).value();
  const PlanDuel none = duel(image, image, inputs, {.seconds = 0.1, .most_seconds = 1e-9}).value();
  EXPECT_TRUE(none.lacks_time);
  EXPECT_EQ(none.outcome, Outcome::timed_out);
  EXPECT_GT(none.run_seconds, 0);
  EXPECT_FALSE(none.is_faster());
  const PlanDuel whole = duel(image, image, inputs, {.seconds = 0.1, .most_seconds = 60}).value();
  EXPECT_FALSE(whole.lacks_time);
  EXPECT_GT(whole.run_seconds, 0);
}

// The time of each kernel among the others, in rounds as the whole.
TEST(PlanDuel, TimesKernelsInTheModel) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  Compilation compilation(graph, target());
  const Image& image = **compilation.image();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  EXPECT_THAT(duel(image, image, inputs, {.seconds = 0.1})->kernels, testing::IsEmpty());
  const PlanDuel fight = duel(image, image, inputs, {.seconds = 0.2, .by_kernel = true}).value();
  ASSERT_EQ(fight.outcome, Outcome::measured) << fight.detail;
  std::set<std::string> names;
  for (const image::Kernel& kernel : image.kernels) names.insert(kernel.name);
  EXPECT_EQ(fight.kernels.size(), names.size());
  double all = 0;
  for (const auto& [name, times] : fight.kernels) {
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_GT(times.ratio, 0) << name;
    EXPECT_TRUE(times.interval) << name;
    all += times.a.min();
  }
  EXPECT_LE(all, fight.times.a.quantile(1));
}

// ---- Models -------------------------------------------------------------------------------------

class TunerTest : public testing::Test {
 protected:
  const Graph graph_ = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();

  // A plan that is not the default, which the log takes for `gain` times as fast.
  Plan remember_slow_plan(double gain) {
    CompileOptions one;
    one.plan.threads = 1;
    one.heuristics.fuse_epilogues = one.heuristics.chains = false;
    const Plan plan = **Compilation(graph_, target(), one).plan();
    EXPECT_TRUE(log_->set_best({.graph = plan.graph_hash,
                                .target = fingerprint(target()),
                                .threads = 1,
                                .plan = print(plan),
                                .gain = gain,
                                .low = gain,
                                .high = gain,
                                .version = "test"})
                    .ok());
    return plan;
  }
};

// Which decisions are searched.
TEST(TuneKinds, AreNamed) {
  TuneOptions options;
  EXPECT_TRUE(try_only(options, "groups,layouts").ok());
  EXPECT_TRUE(options.tries_groups && options.tries_layouts);
  EXPECT_FALSE(options.tries_schedules || options.tries_threads);
  for (const char* words : {"", "all", "groups,", "groups layouts"}) {
    const Status status = try_only(options, words);
    EXPECT_THAT(status.error().hint(), HasSubstr("schedules, layouts, groups, threads")) << words;
  }
}

TEST_F(TunerTest, GivesAPlanThatFitsAndIsNeverSurelySlower) {
  TuneOptions options;
  options.seconds = 4;
  options.log = log_.get();
  options.version = "test";
  std::vector<std::string> lines;
  options.told = [&](std::string_view line) { lines.emplace_back(line); };
  const Tuned tuned = tune(graph_, target(), options).value();
  Compilation compilation(graph_, target());
  const Graph& prepared = **compilation.graph();
  EXPECT_TRUE(check_complete(tuned.plan, prepared, target()).ok());
  EXPECT_GE(tuned.gain(), 1);
  EXPECT_EQ(tuned.is_default, print(tuned.plan) == print(tuned.before));
  EXPECT_FALSE(lines.empty());
  const std::optional<KnownPlan> known = best_plan(*log_, prepared, target(), 1);
  EXPECT_EQ(known.has_value(), !tuned.is_default);
}

// ---- Default plans ------------------------------------------------------------------------------

// The difference between images of plans.
std::string code_of(const Image& image) {
  std::string code;
  for (const image::Kernel& kernel : image.kernels) code += *kernel.object;
  return code;
}

// Made-up times: of this image, and of all others.
PlanTimer timer_of(std::string code, double seconds, double others) {
  return [=](const Image& first, const Image& second, std::span<const Tensor>,
             const DuelOptions&) -> Result<PlanDuel> {
    const auto rounds = [&](const Image& image) {
      return std::vector<std::vector<double>>(10, {code_of(image) == code ? seconds : others});
    };
    return PlanDuel{.outcome = Outcome::measured, .times = judged(rounds(first), rounds(second))};
  };
}

// A formula whose coefficients are bad: nothing stands beside it.
class BadFit : public TrustedPrice {
 public:
  explicit BadFit(const Target& target) : TrustedPrice(target, {.is_misled = true}) {}
  const Cost* baseline() const override { return nullptr; }
};

class DefaultPlans : public TunerTest {
 protected:
  void SetUp() override {
    CompileOptions one;
    one.plan.threads = 1;
    Compilation usual(graph_, target(), one);
    usual_ = **usual.plan();
    code_ = code_of(**usual.image());
    one.cost = std::make_shared<BadFit>(target());
    other_ = **Compilation(graph_, target(), one).plan();
    ASSERT_NE(usual_, other_);
    options_.seconds = 60;  // nothing is searched
    options_.log = log_.get();
    options_.version = "test";
    ASSERT_TRUE(try_only(options_, "threads").ok());  // of one, there are no fewer
    options_.told = [&](std::string_view line) { lines_.emplace_back(line); };
  }
  std::optional<KnownPlan> known() const {
    return best_plan(*log_, **Compilation(graph_, target()).graph(), target(), 1);
  }

  Plan usual_, other_;  // by default prices, and by others
  std::string code_;    // of the former
  TuneOptions options_;
  std::vector<std::string> lines_;
};

// Else gains would be over a plan that only bad prices choose.
TEST_F(DefaultPlans, TheSearchStartsFromTheFastestOne) {
  options_.cost = std::make_shared<BadFit>(target());
  options_.timer = timer_of(code_, 1e-3, 1.76e-3);
  const Tuned tuned = tune(graph_, target(), options_).value();
  EXPECT_THAT(lines_,
              testing::Contains("the plan by default prices: 1.760x that by fitted prices"));
  EXPECT_THAT(lines_, testing::Contains("starts from the plan by default prices"));
  EXPECT_EQ(tuned.before, usual_);
  EXPECT_EQ(tuned.plan, usual_);
  EXPECT_TRUE(tuned.is_default);
  EXPECT_EQ(tuned.gain(), 1);
  ASSERT_EQ(tuned.defaults.size(), 2U);
  EXPECT_EQ(tuned.defaults[tuned.start].prices, "default prices");
  // Commands would plan by the others, so the log has it.
  ASSERT_TRUE(known());
  EXPECT_EQ(known()->plan, usual_);
  EXPECT_EQ(known()->gain, 1);
}

TEST_F(DefaultPlans, PricesThatCommandsPlanByStayIfTheirPlanIsFaster) {
  options_.cost = std::make_shared<BadFit>(target());
  options_.timer = timer_of(code_, 1e-3, 0.8e-3);
  const Tuned tuned = tune(graph_, target(), options_).value();
  EXPECT_THAT(lines_, testing::Contains("starts from the plan by fitted prices"));
  EXPECT_EQ(tuned.before, other_);
  EXPECT_EQ(tuned.start, 0U);
  EXPECT_FALSE(known());
}

TEST_F(DefaultPlans, InDoubtTheyStayToo) {
  options_.cost = std::make_shared<BadFit>(target());
  options_.timer = timer_of(code_, 1e-3, 1e-3);
  EXPECT_EQ(tune(graph_, target(), options_)->before, other_);
}

TEST_F(DefaultPlans, EqualOnesAreNotRaced) {
  options_.timer = [](const Image&, const Image&, std::span<const Tensor>,
                      const DuelOptions&) -> Result<PlanDuel> {
    return over_limit("there is one default plan alone");
  };
  const Tuned tuned = tune(graph_, target(), options_).value();
  EXPECT_EQ(tuned.defaults.size(), 1U);
  EXPECT_EQ(tuned.before, usual_);
}

// Otherwise whoever compiles next would have the schedules that were slower here.
TEST_F(DefaultPlans, TheLogHasTheDefaultWhereLearnedSchedulesLose) {
  options_.cost = std::make_shared<TrustedPrice>(target(), TrustedPrice::Says{.is_misled = true});
  options_.timer = timer_of(code_, 1e-3, 2e-3);
  const Tuned tuned = tune(graph_, target(), options_).value();
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("2.000x that by learned prices")));
  EXPECT_TRUE(tuned.is_default);
  ASSERT_TRUE(known());
  EXPECT_EQ(known()->plan, tuned.before);
}

// The plan that a log has of a graph is taken by whoever compiles it, unless it does not fit.
TEST_F(TunerTest, TheBestPlanOfALogIsTaken) {
  CompileOptions options;
  options.plan.threads = 1;
  Compilation plain(graph_, target(), options);
  const Graph& prepared = **plain.graph();
  Plan other = **plain.plan();
  for (auto& [kernel, schedule] : other.schedule) schedule.unroll.clear();
  bool fits = true;
  options.best_plan = [&](const Graph& graph, const Target&, int64_t threads) {
    EXPECT_EQ(hash_without_weights(graph), hash_without_weights(prepared));
    EXPECT_EQ(threads, 1);
    Plan plan = other;
    if (!fits) plan.schedule.clear();
    return std::optional(plan);
  };
  if (!check_complete(other, prepared, target()).ok()) GTEST_SKIP() << "a gemm needs its unroll";
  EXPECT_EQ(**Compilation(graph_, target(), options).plan(), other);
  fits = false;
  EXPECT_EQ(**Compilation(graph_, target(), options).plan(), **plain.plan());
  fits = true;
  options.plan = **plain.plan();  // somebody has said a plan
  EXPECT_EQ(**Compilation(graph_, target(), options).plan(), **plain.plan());
}

// A plan that this version does not understand, or that does not fit, counts as unknown.
TEST_F(TunerTest, APlanOfAnotherVersionIsUnknownUnlessItFits) {
  CompileOptions one;
  one.plan.threads = 1;
  Compilation compilation(graph_, target(), one);
  const Graph& prepared = **compilation.graph();
  const auto remember = [&](std::string plan) {
    ASSERT_TRUE(log_->set_best({.graph = hash_without_weights(prepared),
                                .target = fingerprint(target()),
                                .threads = 1,
                                .plan = std::move(plan),
                                .gain = 1.5,
                                .low = 1.4,
                                .high = 1.6,
                                .version = "99.0.0"})
                    .ok());
  };
  TuneOptions options;
  options.seconds = 1;
  options.log = log_.get();
  ASSERT_TRUE(try_only(options, "threads").ok());  // of one, there are no fewer
  remember("plan @mlp { swizzle = all }");
  EXPECT_FALSE(best_plan(*log_, prepared, target(), 1));
  EXPECT_FALSE(tune(graph_, target(), options)->was_known);
  Plan unfit = **compilation.plan();
  unfit.schedule.clear();
  unfit.schedule[1] = Schedule();
  remember(print(unfit));
  EXPECT_TRUE(best_plan(*log_, prepared, target(), 1));
  EXPECT_FALSE(tune(graph_, target(), options)->was_known);
  remember(print(**compilation.plan()));  // the default plan is nothing that a log would know
  EXPECT_FALSE(tune(graph_, target(), options)->was_known);
  remember_slow_plan(1.5);
  EXPECT_TRUE(tune(graph_, target(), options)->was_known);
}

TEST_F(TunerTest, ACancelledSearchGivesWhatItHas) {
  CancelToken cancel;
  TuneOptions options;
  options.cancel = &cancel;
  options.told = [&](std::string_view) { cancel.cancel(); };
  const Tuned tuned = tune(graph_, target(), options).value();
  EXPECT_TRUE(tuned.was_cancelled);
  EXPECT_EQ(tuned.trials, 0);  // no schedules after the first line
  EXPECT_GE(tuned.gain(), 1);
}

// A copy of a model with other weights and another head shares the kernels of its body.
TEST_F(TunerTest, AFineTunedCopyProfitsFromWhatItShares) {
  HONE_ONE_RUN_OF(5);
  const ZooOptions tiny = {.size = ZooSize::tiny};
  ZooOptions tuned_further = {.size = ZooSize::tiny, .seed = 1, .classes = 7};
  TuneOptions options;
  options.seconds = 15;
  options.log = log_.get();
  ASSERT_TRUE(try_only(options, "schedules").ok());
  const Tuned first = tune(build_zoo_model("vit_b16", tiny).value(), target(), options).value();
  EXPECT_EQ(first.overlap.known, 0);
  ASSERT_GE(first.kernels, 1);  // were searched
  const Graph copy = build_zoo_model("vit_b16", tuned_further).value();
  const Tuned second = tune(copy, target(), options).value();
  EXPECT_FALSE(second.was_known);
  EXPECT_GT(second.overlap.known, 0);
  EXPECT_LT(second.overlap.known, second.overlap.kernels);
  EXPECT_GT(second.overlap.share, 0);
  EXPECT_LT(second.overlap.share, 1);
  EXPECT_GT(second.reused, 0);
}

// Other weights alone are the same graph: its plan is known.
TEST_F(TunerTest, ACopyWithOtherWeightsHasThePlan) {
  TuneOptions options;
  options.seconds = 2;
  options.log = log_.get();
  ASSERT_TRUE(try_only(options, "threads").ok());
  remember_slow_plan(1.5);
  const Graph copy = build_zoo_model("mlp", {.size = ZooSize::tiny, .seed = 1}).value();
  EXPECT_TRUE(tune(copy, target(), options)->was_known);
}

// A confirmation in doubt does not outweigh one that was not; one that says that the plan is slower
// does.
TEST_F(TunerTest, APlanOfTheLogStaysWhenInDoubt) {
  TuneOptions options;
  options.seconds = 2;
  options.log = log_.get();
  ASSERT_TRUE(try_only(options, "threads").ok());
  const Plan plan = remember_slow_plan(1.5);
  const Tuned tuned = tune(graph_, target(), options).value();
  ASSERT_TRUE(tuned.was_known);
  EXPECT_EQ(tuned.stays.has_value(),
            !tuned.confirmation.is_faster() && !tuned.confirmation.is_slower());
  EXPECT_EQ(tuned.is_default, tuned.confirmation.is_slower());
  EXPECT_EQ(tuned.plan, tuned.is_default ? tuned.before : plan);
  if (tuned.stays) EXPECT_EQ(tuned.gain(), 1.5);
  if (tuned.stays)
    EXPECT_EQ(log_->best(plan.graph_hash, fingerprint(target()), 1)->value().gain, 1.5);
}

TEST_F(TunerTest, RefusesWhatCannotBe) {
  EXPECT_THAT(tune(graph_, target(), {.seconds = 0}).error().what(), HasSubstr("budget"));
  EXPECT_THAT(tune(graph_, target(), {.threads = 0}).error().what(), HasSubstr("0 threads"));
  EXPECT_THAT(tune(graph_, target(), {.search = "none"}).error().hint(), HasSubstr("evolutionary"));
  const Graph open = parse_graph("graph @g(%x: f32[N]) where N in 1..9 { return %x }").value();
  EXPECT_THAT(tune(open, target(), {}).error().what(), HasSubstr("sizes are open"));
}

}  // namespace
}  // namespace hone::HONE_FILE
