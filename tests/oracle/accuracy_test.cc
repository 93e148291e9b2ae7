#include "oracle/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

constexpr double kUlp = 0x1p-23;  // of 1 in f32

// One element, that far from a truth of 1.
AccuracyRun run_of(double actual, double fp32) {
  const auto tensor = [](DType dtype, double error) {
    return Tensor::from_reals(Type::get(dtype, {1}), std::vector{1 + error});
  };
  return {tensor(DType::f32, actual), tensor(DType::f64, 0), tensor(DType::f64, fp32)};
}

TEST(Accuracy, AllowsAFewUnitsOrAFewTimesThePlainError) {
  const auto passes = [](double actual, double fp32) {
    const AccuracyRun run = run_of(actual, fp32);
    return accuracy({&run, 1}).value().passed();
  };
  EXPECT_TRUE(passes(4 * kUlp, 0));
  EXPECT_FALSE(passes(5 * kUlp, 0));
  EXPECT_TRUE(passes(8 * kUlp, 2 * kUlp));
  EXPECT_FALSE(passes(9 * kUlp, 2 * kUlp));
}

// In a cast to f16 and back, say, fp32 keeps what the type does not.
TEST(Accuracy, AllowsAFewTimesTheErrorOfTypes) {
  const auto passes = [](double actual, double rounded) {
    AccuracyRun run = run_of(actual, 0);
    run.rounded = run_of(0, rounded).fp32;
    return accuracy({&run, 1}).value().passed();
  };
  EXPECT_TRUE(passes(0x1p-11, 0x1p-11));
  EXPECT_TRUE(passes(0x1p-9, 0x1p-11));
  EXPECT_FALSE(passes(5 * 0x1p-11, 0x1p-11));
  EXPECT_FALSE(passes(0x1p-11, 0));
}

TEST(Accuracy, IsOverAllRuns) {
  const std::vector<AccuracyRun> runs = {run_of(kUlp, 0), run_of(8 * kUlp, 0), run_of(0, 2 * kUlp)};
  EXPECT_TRUE(accuracy(runs).value().passed());
  const Accuracy first = accuracy(std::span(runs).first(2)).value();
  EXPECT_EQ(first.wrong, 1);
  EXPECT_EQ(first.run, 1u);
  EXPECT_THAT(first.to_string(), HasSubstr("off by 9.54e-07 at element 0 of run 1"));
}

AccuracyRun f64_run(double actual, double fp32, double rounded) {
  AccuracyRun run = run_of(0, fp32);
  run.actual = Tensor::from_reals(Type::get(DType::f64, {1}), std::vector{1 + actual});
  run.rounded = Tensor::from_reals(Type::get(DType::f64, {1}), std::vector{1 + rounded});
  return run;
}

TEST(Accuracy, HoldsF64ToF64) {
  const auto passes = [](double actual, double fp32, double rounded = 0) {
    const AccuracyRun run = f64_run(actual, fp32, rounded);
    return accuracy({&run, 1}).value().passed();
  };
  EXPECT_TRUE(passes(0x1p-50, 0));
  EXPECT_FALSE(passes(5 * 0x1p-52, 0));
  EXPECT_FALSE(passes(kUlp, 100 * kUlp));   // an error of fp32 excuses none of f64,
  EXPECT_TRUE(passes(0x1p-46, 64 * kUlp));  // but one as much smaller as its bits are more
  EXPECT_FALSE(passes(0x1p-43, 64 * kUlp));
  EXPECT_TRUE(passes(4 * kUlp, kUlp, kUlp));  // f32 on the way
  EXPECT_FALSE(passes(1e-4, kUlp, kUlp));
}

// Fewer boxes above a threshold, in fp32.
TEST(Accuracy, WhereRoundingDecidesAPlainWayIsRight) {
  const auto of = [](DType dtype, std::vector<double> numbers) {
    return Tensor::from_reals(Type::get(dtype, {static_cast<int64_t>(numbers.size())}), numbers);
  };
  const auto verdict = [&](std::vector<double> actual, std::vector<double> fp32) {
    const AccuracyRun run = {of(DType::f32, std::move(actual)), of(DType::f64, {1, 2}),
                             of(DType::f64, std::move(fp32))};
    return accuracy({&run, 1}).value();
  };
  EXPECT_TRUE(verdict({1, 2}, {1}).passed());
  EXPECT_FALSE(verdict({1, 3}, {1}).passed());
  EXPECT_TRUE(verdict({1}, {1}).passed());
  EXPECT_THAT(verdict({1}, {1}).to_string(), HasSubstr("rounding decides: the type is f32[1]"));
  EXPECT_FALSE(verdict({1}, {1, 2}).passed());
  EXPECT_THAT(verdict({1}, {1, 2}).to_string(), HasSubstr("wrong shape: the type is f32[1]"));
}

TEST(Accuracy, IntegersAreEqualAndTypesFit) {
  const Type type = Type::get(DType::i32, {2});
  const auto integers = [&](int64_t a, int64_t b) {
    return Tensor::from_integers(type, std::vector<int64_t>{a, b});
  };
  const std::vector<AccuracyRun> runs = {{integers(1, 2), integers(1, 2), integers(1, 2)},
                                         {integers(1, 5), integers(1, 2), integers(1, 2)}};
  const Accuracy result = accuracy(runs).value();
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.error, 3);
  EXPECT_EQ(result.worst, 1);
  const AccuracyRun decided = {integers(1, 5), integers(1, 2), integers(3, 5)};
  EXPECT_TRUE(accuracy({&decided, 1}).value().passed());
  EXPECT_EQ(accuracy({&decided, 1}).value().remark, "rounding decides");
  const std::vector<AccuracyRun> other = {{integers(1, 2), runs[0].wide, run_of(0, 0).fp32}};
  EXPECT_FALSE(accuracy(other).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
