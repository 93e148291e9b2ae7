#include "base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (double number : numbers) sum.add(number);
  return sum.value();
}

TEST(ExactSum, RoundsOnce) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1e16, 1, 1, -1e16}), 2);
  EXPECT_EQ(sum_of(std::vector<double>(10, 0.1)), 1);
  // Between two doubles, the part far below decides.
  const double half = std::ldexp(1.0, -53), tiny = std::ldexp(1.0, -200);
  EXPECT_EQ(sum_of({1, half}), 1);
  EXPECT_EQ(sum_of({1, half, tiny}), 1 + 2 * half);
  EXPECT_EQ(sum_of({1, half, -tiny}), 1);
  EXPECT_EQ(sum_of({1 + 2 * half, half, -tiny}), 1 + 2 * half);
}

TEST(ExactSum, DependsOnItsNumbersAlone) {
  Rng rng(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> numbers;
    for (int i = 0; i < 200; ++i)
      numbers.push_back(std::ldexp(rng.uniform(), static_cast<int>(rng.below(60)) - 50));
    const double sum = sum_of(numbers);
    std::vector<double> other = numbers;
    rng.shuffle(std::span(other));
    EXPECT_EQ(sum_of(other), sum);
    ExactSum changed;
    for (double number : numbers) changed.add(number);
    for (double number : other) changed.add(3 * number);
    for (double number : numbers) changed.remove(3 * number);
    EXPECT_EQ(changed.value(), sum);
  }
}

TEST(ExactSum, InfiniteNumbersGoAgain) {
  ExactSum sum;
  for (double number : {1.0, double{INFINITY}, double{NAN}, 1e305}) sum.add(number);
  EXPECT_EQ(sum.value(), INFINITY);
  for (double number : {double{INFINITY}, double{NAN}, 1e305}) sum.remove(number);
  EXPECT_EQ(sum.value(), 1);
}

}  // namespace
}  // namespace hone::HONE_FILE
