#include "tune/gpu_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/compilation.h"
#include "compile/gpu_kernels.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
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
  void add(const KernelCandidate& shown, const KernelCandidate& run, int64_t works) {
    const Status added = backing_.add(cuda_, shown.kernel.tiles, run.kernel.tiles, target_, works);
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
  const int64_t before = cuda_.calls();
  KernelMeter meter = KernelMeter::make(all[0], target_, cold).value();
  const std::vector<Measured> results = meter.race({}, 3).value();
  // One launch at a time, with the microsecond of an event.
  for (double seconds : results[0].seconds) EXPECT_NEAR(seconds, 6e-6, 1e-7);
  EXPECT_GT(cuda_.calls(), before);
}

// At whichever call it is lost.
TEST_F(GpuRaceTest, ALostGpuEndsTheRace) {
  const std::vector<KernelCandidate> all = candidates(kExp, 2);
  const auto race = [&]() -> Status {
    KernelMeter meter = HONE_TRY(KernelMeter::make(all[0], target_, options()));
    HONE_TRY(meter.race(std::span(all).subspan(1), 3));
    return {};
  };
  const auto prepared = [&](int64_t failing) {
    cuda_.reset({.failing_call = failing, .failing_code = 700});
    for (const KernelCandidate& one : all) add(one, one, 200);
  };
  prepared(0);
  ASSERT_TRUE(race().ok());
  const int64_t calls = cuda_.calls();
  int64_t failed = 0, tried = 0;
  for (int64_t failing = 1; failing < calls; failing += 5, ++tried) {
    prepared(failing);
    const Status lost = race();
    if (lost.ok()) continue;  // what gives things back fails without a word
    ++failed;
    EXPECT_THAT(lost.error().to_string(), HasSubstr("ILLEGAL_ADDRESS")) << failing;
  }
  EXPECT_GT(failed, 3 * tried / 4);
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
  EXPECT_TRUE(fight(*one, *two, {.seconds = 0.01}).is_slower());
  EXPECT_EQ(fight(*one, *other, {.seconds = 0.01}).outcome, Outcome::wrong);
  EXPECT_TRUE(fight(*one, *two, {.seconds = 0.01, .most_seconds = 1e-6}).lacks_time);
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
