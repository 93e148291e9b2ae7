#include "alloc/subset_sum.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hone {
namespace {

// How many it takes, by all subsets; 0 if there are none.
int fewest(std::span<const int64_t> numbers, int64_t sum) {
  int result = 0;
  for (uint32_t set = 1; set < uint32_t{1} << numbers.size(); ++set) {
    int64_t of_set = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (set >> i & 1) of_set += numbers[i];
    if (of_set == sum && (result == 0 || std::popcount(set) < result)) result = std::popcount(set);
  }
  return result;
}

TEST(SubsetSum, FindsTheFewest) {
  Rng rng(1);
  SubsetSum subsets;
  int without = 0;
  constexpr int kTries = 3000;
  for (int i = 0; i < kTries; ++i) {
    std::vector<int64_t> numbers(static_cast<size_t>(rng.between(0, 9)));
    for (int64_t& n : numbers) n = rng.between(1, 40);
    const int64_t sum = rng.between(1, 120);
    subsets.set(numbers);
    ASSERT_EQ(subsets.all(), std::accumulate(numbers.begin(), numbers.end(), int64_t{0}));
    const auto found = subsets.find(sum);
    ASSERT_EQ(std::ssize(found), fewest(numbers, sum));
    without += found.empty();
    if (found.empty()) continue;
    ASSERT_TRUE(std::ranges::is_sorted(found, std::less_equal()));  // none twice
    int64_t of_found = 0;
    for (int32_t place : found) of_found += numbers[static_cast<size_t>(place)];
    ASSERT_EQ(of_found, sum);
  }
  EXPECT_GT(without, kTries / 10);
  EXPECT_LT(without, kTries * 9 / 10);
}

TEST(SubsetSum, LooksThroughAMillionInThousands) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < SubsetSum::kMostNumbers; ++i)
    numbers.push_back((int64_t{1} << 40) + (int64_t{1} << i));
  SubsetSum subsets;
  subsets.set(numbers);
  EXPECT_LE(subsets.steps(), 2 << 10);
  // All but the first and the last.
  const auto found = subsets.find(subsets.all() - numbers.front() - numbers.back());
  ASSERT_EQ(found.size(), numbers.size() - 2);
  EXPECT_EQ(found.front(), 1);
  EXPECT_TRUE(subsets.find(subsets.all() - 1).empty());
}

}  // namespace
}  // namespace hone
