#include "oracle/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone {
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

// Of a cast to f16 and back, say: fp32 keeps what the type does not.
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
  const std::vector<AccuracyRun> other = {{integers(1, 2), runs[0].wide, run_of(0, 0).fp32}};
  EXPECT_FALSE(accuracy(other).ok());
}

}  // namespace
}  // namespace hone
