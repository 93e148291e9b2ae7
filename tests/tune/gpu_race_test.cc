#include "tune/gpu_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/thread_pool.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/compilation.h"
#include "compile/gpu_kernels.h"
#include "cost/gpu_cost.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "measure/timing.h"
#include "rewrite/prepare.h"
#include "session/gpu.h"
#include "tests/base/says_testing.h"
#include "tests/fake_cuda/backing_testing.h"
#include "tests/program/random_kernels.h"
#include "tune/best_plan.h"
#include "tune/kernel_timer.h"
#include "tune/tuner.h"
#include "zoo/inputs.h"

// Measurements on the fake GPU, on which each kernel takes as long as the test says.

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;
using tested::GpuBacking;
using tested::says;
using testing::HasSubstr;

constexpr std::string_view kExp = "graph @g(%x: f32[24, 40]) { %y = exp %x return %y }";
constexpr std::string_view kTanh = "graph @g(%x: f32[24, 40]) { %y = tanh %x return %y }";

std::shared_ptr<const KernelFacts> facts_of(std::string_view text) {
  return std::make_shared<const KernelFacts>(
      body_of_all(prepare(parse_graph(text).value()).value()));
}

class GpuRaceTest : public testing::Test {
 protected:
  static std::string ptx(const TileProgram& tiles) {
    return compile_for_gpu(tiles, 90, kGpuSymbol).value().ptx;
  }
  // A candidate for each different code; `count` at most.
  std::vector<KernelCandidate> candidates(std::string_view text, size_t count) const {
    const auto facts = facts_of(text);
    const auto body = std::make_shared<const KernelBody>(facts->body);
    const ScheduleSpace space(facts->body, *facts, target_);
    std::vector<KernelCandidate> all;
    std::set<std::string> texts;
    for (const Schedule& schedule : space.enumerate(1000)) {
      KernelCandidate one = candidate_of(body, schedule, target_).value();
      if (texts.insert(ptx(one.kernel.tiles)).second) all.push_back(std::move(one));
      if (all.size() == count) break;
    }
    return all;
  }
  void add(const KernelCandidate& shown, const KernelCandidate& run, int64_t works,
           const fake::Fate& fate = {}) {
    const Status added =
        backing_.add(cuda_, shown.kernel.tiles, run.kernel.tiles, target_, works, fate);
    ASSERT_TRUE(added.ok()) << added.error().to_string();
  }
  MeterOptions options() const {
    MeterOptions options;
    options.device = device_;
    return options;
  }

  const FakeCuda cuda_;
  GpuBacking backing_;
  const std::shared_ptr<const CudaDevice> device_ = cuda_.device().value();
  const Target target_ = gpu_target(*device_).value();
};

TEST_F(GpuRaceTest, EachCandidateHasItsTimeOrAReasonForNone) {
  const std::vector<KernelCandidate> all = candidates(kExp, 5);
  ASSERT_EQ(all.size(), 5U);
  add(all[0], all[0], 5);
  add(all[1], all[1], 1);
  add(all[2], all[2], 20);
  add(all[3], candidates(kTanh, 1)[0], 1);  // it computes something else
  KernelMeter meter = KernelMeter::make(all[0], target_, options()).value();
  const std::vector<Measured> results = meter.race(std::span(all).subspan(1)).value();
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0].outcome, Outcome::measured) << results[0].detail;
  EXPECT_TRUE(results[0].is_ahead);
  EXPECT_EQ(std::ssize(results[0].seconds), KernelMeter::kRounds);
  EXPECT_NEAR(typical(results[0].seconds), 1e-6, 1e-7);  // and a part of an event's microsecond
  EXPECT_EQ(results[1].outcome, Outcome::measured) << results[1].detail;
  EXPECT_FALSE(results[1].is_ahead);
  EXPECT_EQ(results[2].outcome, Outcome::wrong);
  EXPECT_EQ(results[3].outcome, Outcome::refused);
  EXPECT_THAT(results[3].detail, HasSubstr("function 'kernel"));  // the driver does not know it
  EXPECT_NEAR(typical(results[4].seconds), 5e-6, 2e-7);
  EXPECT_TRUE(results[4].is_ahead);
  EXPECT_EQ(meter.compiles(), 5);
}

TEST_F(GpuRaceTest, ColdCachesAreFilledBeforeEachLaunch) {
  const std::vector<KernelCandidate> all = candidates(kExp, 1);
  add(all[0], all[0], 5);
  MeterOptions cold = options();
  cold.conditions.all_cold = true;
  KernelMeter meter = KernelMeter::make(all[0], target_, cold).value();
  const int64_t copied = cuda_.counts().copied;
  const std::vector<Measured> results = meter.race({}, 3).value();
  // One launch at a time, with the microsecond of an event.
  for (double seconds : results[0].seconds) EXPECT_NEAR(seconds, 6e-6, 1e-7);
  EXPECT_EQ(cuda_.counts().copied - copied, 3 * target_.caches.back().bytes);
}

TEST_F(GpuRaceTest, ASlowCandidateHasOneLaunch) {
  const std::vector<KernelCandidate> all = candidates(kExp, 3);
  int64_t slow = 0, other = 0;
  add(all[0], all[0], 5);
  add(all[1], all[1], 50 * 5, {.launches = &slow});
  add(all[2], all[2], 5, {.launches = &other});
  KernelMeter meter = KernelMeter::make(all[0], target_, options()).value();
  const std::vector<Measured> results = meter.race(std::span(all).subspan(1)).value();
  EXPECT_EQ(slow, 1);
  EXPECT_EQ(results[0].outcome, Outcome::measured);
  EXPECT_FALSE(results[0].is_ahead);
  ASSERT_EQ(results[0].seconds.size(), 1U);
  EXPECT_NEAR(results[0].seconds[0], 250e-6, 2e-6);
  EXPECT_GT(other, 100);
  EXPECT_TRUE(results[1].is_ahead);

  MeterOptions hasty = options();
  hasty.launch_seconds = 100e-6;
  EXPECT_THAT(KernelMeter::make(all[1], target_, hasty).error(),
              says("launch takes 0.000251 s...0.0001 s"));
}

// A product by one thread, or a few, takes a thousand times as long as by a block for each tile.
TEST_F(GpuRaceTest, WhatTakesFarTooLongByItsPriceIsNotLaunched) {
  constexpr std::string_view kProduct =
      "graph @g(%a: f32[256, 256], %b: f32[256, 256]) { "
      "%c = dot %a, %b {lhs_contract = [1], rhs_contract = [0]} return %c }";
  const auto facts = facts_of(kProduct);
  const auto cost = analytic_cost(target_);
  const auto price = cost->kernel(facts, 1);
  const auto price_of = [&](const Schedule& schedule) { return price->seconds(schedule); };
  const ScheduleSpace space(facts->body, *facts, target_);
  std::vector<Schedule> all = {plain_nest(facts->space.parallel)};  // one thread
  Rng rng(1);
  for (int i = 0; i < 1000; ++i)
    if (Schedule drawn = space.sample(rng); drawn.algorithm() == Algorithm::nest)
      all.push_back(std::move(drawn));
  std::ranges::sort(all, {}, price_of);
  ASSERT_GT(price_of(all.back()), 0.01);
  ASSERT_GT(price_of(all.back()), 100 * price_of(all.front()));
  const auto body = std::make_shared<const KernelBody>(facts->body);
  const KernelCandidate first = candidate_of(body, all.front(), target_).value(),
                        far = candidate_of(body, all.back(), target_).value();
  int64_t launches = 0;
  add(first, first, 50);
  add(far, far, 50, {.launches = &launches});
  KernelMeter meter = KernelMeter::make(first, target_, options()).value();
  const std::vector<Measured> results = meter.race({&far, 1}).value();
  EXPECT_EQ(results[0].outcome, Outcome::refused);
  EXPECT_THAT(results[0].detail, HasSubstr("cannot be stopped"));
  EXPECT_EQ(launches, 0);
}

TEST_F(GpuRaceTest, CandidatesAreCompiledSideBySideEachOnce) {
  const std::vector<KernelCandidate> all = candidates(kExp, 9);
  ASSERT_EQ(all.size(), 9U);
  const int together = default_pool().threads() > 1 ? 2 : 1;
  cuda_.reset({.links_together = together});
  add(all[0], all[0], 5);
  add(all[1], all[1], 5, {.is_refused = true});
  for (size_t i = 2; i < all.size(); ++i) add(all[i], all[i], 5);
  const auto others = std::span(all).subspan(1);
  KernelMeter meter = KernelMeter::make(all[0], target_, options()).value();
  const std::vector<Measured> results = meter.race(others, 3).value();
  EXPECT_EQ(results[0].outcome, Outcome::refused);
  EXPECT_THAT(results[0].detail, HasSubstr("INVALID_PTX"));
  for (size_t i = 1; i < others.size(); ++i) EXPECT_EQ(results[i].outcome, Outcome::measured) << i;
  EXPECT_EQ(cuda_.counts().links, std::ssize(all));
  EXPECT_GE(cuda_.counts().most_links, together);
}

TEST_F(GpuRaceTest, AClockThatTellsNothingIsAReason) {
  const std::vector<KernelCandidate> all = candidates(kExp, 1);
  cuda_.reset({.tick = 1'000'000});
  add(all[0], all[0], 5);
  EXPECT_THAT(KernelMeter::make(all[0], target_, options()).error(),
              says("clock tells no time of 100 launches"));
  EXPECT_EQ(times_in(1, 0, 1, 100), 100);
  EXPECT_EQ(times_in(0, 0, 1, 100), 1);
  EXPECT_EQ(times_in(1, 0.3, 1, 100), 3);
  EXPECT_EQ(times_in(std::numeric_limits<double>::infinity(), 1, 1, 100), 100);
}

// The GPU's clock drops to a half after the first of the candidates, which are all as fast.
TEST_F(GpuRaceTest, ACandidateCountsByTheChampionBesideIt) {
  const std::vector<KernelCandidate> all = candidates(kExp, 3);
  const auto race = [&](int64_t slow_after) {
    cuda_.reset({.slow_after = slow_after});
    for (const KernelCandidate& one : all) add(one, one, 20);
    KernelMeter meter = KernelMeter::make(all[0], target_, options()).value();
    const int64_t begun = cuda_.counts().launches;
    const std::vector<Measured> results = meter.race(std::span(all).subspan(1)).value();
    for (const Measured& result : results) {
      EXPECT_EQ(result.outcome, Outcome::measured) << result.detail;
      EXPECT_NEAR(typical(result.seconds) / typical(results.back().seconds), 1, 0.02);
    }
    return (begun + cuda_.counts().launches) / 2;
  };
  const int64_t middle = race(std::numeric_limits<int64_t>::max());
  race(middle);
}

TEST_F(GpuRaceTest, ACancelledRaceEndsBeforeTheNextLaunch) {
  const std::vector<KernelCandidate> all = candidates(kExp, 2);
  int64_t launches = 0;
  for (const KernelCandidate& one : all) add(one, one, 5, {.launches = &launches});
  CancelToken cancel;
  MeterOptions cancelled = options();
  cancelled.cancel = &cancel;
  KernelMeter meter = KernelMeter::make(all[0], target_, cancelled).value();
  const int64_t before = launches;
  cancel.cancel();
  EXPECT_EQ(meter.race(std::span(all).subspan(1)).error().code(), ErrorCode::interrupted);
  EXPECT_EQ(launches, before);
}

// At whichever allocation: a candidate is refused, or the champion cannot be measured.
TEST_F(GpuRaceTest, MemoryThatIsMissingIsTheCandidatesOwn) {
  const std::vector<KernelCandidate> all = candidates(kExp, 2);
  const auto prepared = [&](int64_t failing) {
    cuda_.reset({.failing_call = failing, .failing_code = 2});
    for (const KernelCandidate& one : all) add(one, one, 200);
  };
  prepared(0);
  std::optional<KernelMeter> meter;
  meter.emplace(KernelMeter::make(all[0], target_, options()).value());
  const int64_t first = cuda_.calls();
  ASSERT_TRUE(meter->race(std::span(all).subspan(1), 3).ok());
  const int64_t last = cuda_.calls();
  int64_t refused = 0;
  for (int64_t failing = first + 1; failing <= last; failing += 3) {
    meter.reset();
    prepared(failing);
    meter.emplace(KernelMeter::make(all[0], target_, options()).value());
    const Result<std::vector<Measured>> results = meter->race(std::span(all).subspan(1), 3);
    if (!results.ok()) continue;  // a sample of the champion
    refused += results->front().outcome == Outcome::refused;
    EXPECT_TRUE(results->back().is_ahead);
    EXPECT_TRUE(meter->race(std::span(all).subspan(1), 3).ok()) << failing;
  }
  EXPECT_GT(refused, 5);
  meter.reset();
  cuda_.reset({});
}

// At whichever call it is lost.
TEST_F(GpuRaceTest, ALostGpuEndsTheRace) {
  const std::vector<KernelCandidate> all = candidates(kExp, 2);
  const auto prepared = [&](int64_t failing) {
    cuda_.reset({.failing_call = failing, .failing_code = 700});
    for (const KernelCandidate& one : all) add(one, one, 200);
  };
  const auto race = [&](KernelMeter& meter) -> Status {
    HONE_TRY(meter.race(std::span(all).subspan(1), 3));
    return {};
  };
  prepared(0);
  int64_t calls = 0;
  {
    KernelMeter meter = KernelMeter::make(all[0], target_, options()).value();
    ASSERT_TRUE(race(meter).ok());
    calls = cuda_.calls();
  }
  for (int64_t failing = 1; failing <= calls; failing += 3) {
    prepared(failing);
    Result<KernelMeter> meter = KernelMeter::make(all[0], target_, options());
    Status lost = meter.ok() ? race(*meter) : Status(meter.error());
    // Calls that give things back fail without a word. Then the next race knows.
    if (lost.ok()) lost = race(*meter);
    ASSERT_FALSE(lost.ok()) << failing;
    EXPECT_THAT(lost.error().to_string(), HasSubstr("ILLEGAL_ADDRESS")) << failing;
  }
  cuda_.reset({});
}

TEST_F(GpuRaceTest, DuelsOfPlansTellTheFasterOne) {
  const auto compiled = [&](std::string_view text, std::string_view without) {
    CompileOptions options;
    if (!without.empty()) EXPECT_TRUE(leave_out(options.heuristics, without).ok());
    auto code = std::make_unique<Compilation>(parse_graph(text).value(), target_, options);
    EXPECT_TRUE(code->image().ok());
    return code;
  };
  const auto image = [](Compilation& code) {
    const std::span<const GpuKernel> kernels = code.gpu_kernels();
    return GpuImage{**code.image(), {kernels.begin(), kernels.end()}};
  };
  constexpr std::string_view kTwo =
      "graph @g(%x: f32[24, 40]) { %a = exp %x %y = add %a, %x return %y }";
  const auto one = compiled(kTwo, ""), two = compiled(kTwo, "fuse_elementwise"),
             other = compiled(kExp, "");
  ASSERT_EQ((*one->program())->kernels.size() + 1, (*two->program())->kernels.size());
  for (Compilation* code : {one.get(), two.get(), other.get()})
    ASSERT_TRUE(backing_.add(cuda_, **code->program(), target_, 100).ok());
  const std::vector<Tensor> inputs = random_inputs(parse_graph(kTwo).value(), 1).value();
  const auto fight = [&](Compilation& a, Compilation& b, const DuelOptions& options) {
    return gpu_duel(device_, image(a), image(b), inputs, options).value();
  };
  const PlanDuel faster = fight(*two, *one, {.seconds = 0.01, .by_kernel = true});
  EXPECT_EQ(faster.outcome, Outcome::measured) << faster.detail;
  EXPECT_TRUE(faster.is_faster());
  EXPECT_NEAR(faster.gain(), 2, 0.05);
  EXPECT_GT(faster.run_seconds, 0);
  const PlanDuel equal = fight(*two, *two, {.seconds = 0.01, .by_kernel = true});
  EXPECT_FALSE(equal.is_faster() || equal.is_slower());
  EXPECT_EQ(equal.kernels.size(), 2U);
  for (const auto& [kernel, duel] : equal.kernels) {
    EXPECT_NEAR(duel.ratio, 1, 1e-9) << kernel;
    EXPECT_NEAR(duel.a.median(), 101e-6, 1e-6) << kernel;
  }
  EXPECT_TRUE(fight(*one, *two, {.seconds = 0.01}).is_slower());
  EXPECT_EQ(fight(*one, *other, {.seconds = 0.01}).outcome, Outcome::wrong);
  EXPECT_TRUE(fight(*one, *two, {.seconds = 0.01, .most_seconds = 1e-6}).lacks_time);
  // The GPU's clock tells no time of any run.
  cuda_.reset({.tick = 1'000'000});
  for (Compilation* code : {one.get(), two.get()})
    ASSERT_TRUE(backing_.add(cuda_, **code->program(), target_, 100).ok());
  const PlanDuel untold = fight(*two, *one, {.seconds = 0.01});
  EXPECT_EQ(untold.outcome, Outcome::measured);
  EXPECT_FALSE(untold.is_faster());
}

TEST_F(GpuRaceTest, BothPlansOfADuelHaveToFit) {
  constexpr std::string_view kTwo =
      "graph @g(%x: f32[24, 40]) { %a = exp %x %y = add %a, %x return %y }";
  TuneOptions options = {.seconds = 1, .threads = target_.cores};
  options.device = device_;
  ASSERT_TRUE(leave_out(options.heuristics, "fuse_elementwise").ok());
  CompileOptions compile;
  compile.heuristics = options.heuristics;
  Compilation usual(parse_graph(kTwo).value(), target_, compile);
  const int64_t arena = (*usual.image())->arena_bytes;
  ASSERT_GT(arena, 0);
  options.memory_limit = 2 * arena - 1;
  EXPECT_THAT(tune(parse_graph(kTwo).value(), target_, options),
              tested::refuses(ErrorCode::limit, "two plans that run in turns"));
}

// The schedule that it begins with is sound, and no other is.
TEST_F(GpuRaceTest, TuningEndsWithAGpuThatIsLost) {
  const Graph graph = parse_graph(kExp).value();
  Compilation usual(graph, target_);
  const TileProgram planned = (*usual.program())->kernels[0].tiles;
  ASSERT_TRUE(backing_.add(cuda_, planned, planned, target_, 800).ok());
  ASSERT_TRUE(backing_.add_any(cuda_, planned, 200, {.fails = 700}).ok());
  TuneOptions options = {.seconds = 15, .threads = target_.cores};
  options.device = device_;
  ASSERT_TRUE(try_only(options, "schedules").ok());
  const Result<Tuned> tuned = tune(graph, target_, options);
  ASSERT_FALSE(tuned.ok());
  EXPECT_THAT(tuned.error(), says("CUDA_ERROR_ILLEGAL_ADDRESS...the GPU is lost"));
  cuda_.reset({});
}

TEST_F(GpuRaceTest, TuningFindsTheFastestScheduleAndKeepsIt) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::unique_ptr<Log> log = Log::open((folder.path() / "log.db").native()).value();
  const Graph graph = parse_graph(kExp).value();
  Compilation usual(graph, target_);
  const TileProgram planned = (*usual.program())->kernels[0].tiles;
  ASSERT_TRUE(backing_.add(cuda_, planned, planned, target_, 800).ok());
  ASSERT_TRUE(backing_.add_any(cuda_, planned, 200).ok());
  TuneOptions options = {.seconds = 15, .threads = target_.cores, .log = log.get()};
  options.device = device_;
  ASSERT_TRUE(try_only(options, "schedules").ok());
  const Result<Tuned> tuned = tune(graph, target_, options);
  ASSERT_TRUE(tuned.ok()) << tuned.error().to_string();
  EXPECT_FALSE(tuned->is_default);
  EXPECT_GT(tuned->gain(), 1.9);
  EXPECT_GT(tuned->measured, 1);
  const std::optional<KnownPlan> kept =
      best_plan(*log, prepare(graph).value(), target_, target_.cores);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->plan, tuned->plan);
}

}  // namespace
}  // namespace hone::HONE_FILE
