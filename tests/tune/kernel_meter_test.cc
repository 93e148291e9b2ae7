#include "tune/kernel_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/sanitizers.h"
#include "ir/text.h"
#include "kernel/schedule_space.h"
#include "rewrite/prepare.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

std::shared_ptr<const KernelBody> body_of_text(std::string_view text) {
  return std::make_shared<const KernelBody>(
      body_of_all(prepare(parse_graph(text).value()).value()));
}

constexpr std::string_view kLayer = R"(graph @layer(%x: f32[24, 40], %w: f32[40, 32]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})";
constexpr std::string_view kOtherLayer = R"(graph @layer(%x: f32[24, 40], %w: f32[40, 32]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = exp %h
  return %y
})";

class KernelMeterTest : public testing::Test {
 protected:
  KernelCandidate candidate(std::string_view text, uint64_t seed) const {
    const std::shared_ptr<const KernelBody> body = body_of_text(text);
    Rng rng(seed);
    return candidate_of(body, random_schedule(*body, target_, rng), target_).value();
  }
  KernelMeter meter(const MeterOptions& options = {}) const {
    return KernelMeter::make(candidate(kLayer, 1), target_, options).value();
  }
  // The meter's result for a candidate that is compiled so, with another beside it.
  std::vector<Measured> race_of(decltype(MeterOptions::compile) compile,
                                MeterOptions options = {}) {
    const std::vector<KernelCandidate> both = {candidate(kLayer, 2), candidate(kLayer, 3)};
    options.compile = [&](const KernelCandidate& one, const Target& target) {
      return one.code == both[0].code ? compile(one, target) : object_of(one, target);
    };
    return meter(options).race(both).value();
  }

  const Target target_ = host_target().value();
};

TEST_F(KernelMeterTest, TakesSamplesInTurns) {
  const std::vector<KernelCandidate> others = {candidate(kLayer, 2), candidate(kLayer, 3)};
  ASSERT_NE(others[0].code, others[1].code);
  KernelMeter meter = this->meter();
  const std::vector<Measured> results = meter.race(others).value();
  ASSERT_EQ(results.size(), 3U);
  for (const Measured& result : results) {
    EXPECT_EQ(result.outcome, Outcome::measured) << result.detail;
    EXPECT_GE(result.seconds.size(), 1U);  // one that is clearly slower drops out
    for (double seconds : result.seconds) EXPECT_GT(seconds, 0);
  }
  EXPECT_TRUE(results[2].is_ahead);  // the champion stays to the end
  EXPECT_GE(results[2].seconds.size(), kPlaces);
  EXPECT_EQ(meter.compiles(), 3);
}

TEST_F(KernelMeterTest, ColdInputsAndThreadsAreConditionsOfTheirOwn) {
  MeterOptions options;
  options.conditions = {.threads = target_.cores, .cold = {false, true}};
  const std::vector<Measured> results = meter(options).race({}).value();
  EXPECT_EQ(results[0].outcome, Outcome::measured);
  EXPECT_EQ(options.conditions.text(), fmt::format("protocol=1 threads={} cold=01", target_.cores));
  EXPECT_EQ((MeterConditions{.cold = {false, false}}.text()), MeterConditions().text());
  // However many inputs there are.
  options.conditions = {.all_cold = true};
  EXPECT_EQ(meter(options).race({}).value()[0].outcome, Outcome::measured);
  EXPECT_EQ(options.conditions.text(), "protocol=1 threads=1 cold=all");
}

TEST_F(KernelMeterTest, WrongResultsHaveNoTime) {
  const std::vector<KernelCandidate> wrong = {candidate(kOtherLayer, 2)};
  const std::vector<Measured> results = meter().race(wrong).value();
  EXPECT_EQ(results[0].outcome, Outcome::wrong);
  EXPECT_TRUE(results[0].seconds.empty());
  EXPECT_EQ(results[1].outcome, Outcome::measured);
}

TEST_F(KernelMeterTest, ACompilerThatCrashesOrHangsCostsOneCandidate) {
  std::vector<Measured> results =
      race_of([](const KernelCandidate&, const Target&) -> Result<std::string> { std::abort(); });
  EXPECT_EQ(results[0].outcome, Outcome::crashed);
  EXPECT_THAT(results[0].detail, HasSubstr("SIGABRT"));
  EXPECT_EQ(results[1].outcome, Outcome::measured);

  results = race_of(
      [](const KernelCandidate&, const Target&) -> Result<std::string> {
        for (;;) pause();
      },
      {.compile_seconds = 3});
  EXPECT_EQ(results[0].outcome, Outcome::timed_out);
  EXPECT_EQ(results[1].outcome, Outcome::measured);

  results = race_of([](const KernelCandidate&, const Target&) -> Result<std::string> {
    return unsupported("no such code");
  });
  EXPECT_EQ(results[0].outcome, Outcome::refused);
  EXPECT_THAT(results[0].detail, HasSubstr("no such code"));
  EXPECT_EQ(results[1].outcome, Outcome::measured);
}

TEST_F(KernelMeterTest, ACompilerThatWantsAllMemoryCostsOneCandidate) {
  if (kUnderAsan) GTEST_SKIP() << "AddressSanitizer reserves more memory than any limit";
  const std::vector<Measured> results = race_of(
      [](const KernelCandidate&, const Target&) -> Result<std::string> {
        return std::string(size_t{8} << 30, 'x');
      },
      {.memory_bytes = int64_t{1} << 30});
  EXPECT_EQ(results[0].outcome, Outcome::out_of_memory);
  EXPECT_EQ(results[1].outcome, Outcome::measured);
}

// Code of a kernel with more rows than the operands have writes where no memory is.
TEST_F(KernelMeterTest, CodeThatCrashesCostsOneCandidate) {
  const std::vector<Measured> results = race_of([](const KernelCandidate&, const Target& target) {
    const std::shared_ptr<const KernelBody> body = body_of_text(
        "graph @g(%x: f32[40000000], %w: f32[40000000]) { %y = add %x, %w return %y }");
    const Schedule nest = plain_nest(1);
    return object_of(candidate_of(body, nest, target).value(), target);
  });
  EXPECT_EQ(results[0].outcome, Outcome::crashed) << name(results[0].outcome);
  EXPECT_EQ(results[1].outcome, Outcome::measured);
  EXPECT_EQ(results[2].outcome, Outcome::measured);
}

// A launch that would take many seconds is cut off, and the others keep their places.
TEST_F(KernelMeterTest, ALaunchThatTakesFarTooLongIsCutOff) {
  constexpr std::string_view kSlow = R"(graph @slow(%x: f32[24, 40], %w: f32[40, 32]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %b = broadcast %h {dims = [24, 32, 20000000], map = [0, 1]}
  %i = iota {dtype = f32, dims = [24, 32, 20000000], axis = 2}
  %c = add %b, %i
  %e = exp %c
  %y = reduce %e {kind = sum, axes = [2]}
  return %y
})";
  const std::vector<Measured> results = race_of([&](const KernelCandidate&, const Target& target) {
    return object_of(candidate_of(body_of_text(kSlow), plain_nest(2), target).value(), target);
  });
  EXPECT_EQ(results[0].outcome, Outcome::timed_out) << name(results[0].outcome);
  EXPECT_THAT(results[0].detail, HasSubstr("too long"));
  EXPECT_EQ(results[1].outcome, Outcome::measured);
  EXPECT_EQ(results[2].outcome, Outcome::measured);
}

TEST(Typical, IsTheMedianPlaceAtItsBest) {
  EXPECT_EQ(typical(std::vector<double>{5, 9, 2, 4, 8, 3}), 4);  // 4, 8 and 2 at the places
  EXPECT_EQ(typical(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isinf(typical({})));
}

}  // namespace
}  // namespace hone::HONE_FILE
