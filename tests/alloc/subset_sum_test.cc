#include "alloc/subset_sum.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hone {
namespace {

constexpr int64_t kMany = 1'000'000;  // steps

// All subsets of so many numbers at most.
bool exists(std::span<const int64_t> numbers, int64_t sum, int most) {
  for (uint32_t set = 1; set < uint32_t{1} << numbers.size(); ++set) {
    if (std::popcount(set) > most) continue;
    int64_t of_set = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (set >> i & 1) of_set += numbers[i];
    if (of_set == sum) return true;
  }
  return false;
}

TEST(SubsetSum, FindsWhatThereIs) {
  Rng rng(1);
  SubsetSum subsets;
  int found_any = 0, found_none = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<int64_t> numbers(static_cast<size_t>(rng.between(1, 9)));
    for (int64_t& n : numbers) n = rng.between(1, 40);
    std::ranges::sort(numbers, std::greater());
    const int64_t sum = rng.between(1, 120);
    const int most = static_cast<int>(rng.between(1, 6));
    subsets.set(numbers);
    ASSERT_EQ(subsets.all(), std::accumulate(numbers.begin(), numbers.end(), int64_t{0}));
    const auto found = subsets.find(sum, most, kMany);
    ASSERT_EQ(!found.empty(), exists(numbers, sum, most));
    (found.empty() ? found_none : found_any)++;
    if (found.empty()) continue;
    ASSERT_LE(std::ssize(found), most);
    ASSERT_TRUE(std::ranges::is_sorted(found, std::less_equal()));  // none twice
    int64_t of_found = 0;
    for (int32_t place : found) of_found += numbers[static_cast<size_t>(place)];
    ASSERT_EQ(of_found, sum);
  }
  EXPECT_GT(found_any, 500);
  EXPECT_GT(found_none, 500);
}

TEST(SubsetSum, GivesUp) {
  // Even numbers have no odd sum, and there are many to try.
  std::vector<int64_t> numbers;
  for (int64_t n = 200; n > 0; --n) numbers.push_back(1000 + 2 * n);
  SubsetSum subsets;
  subsets.set(numbers);
  EXPECT_TRUE(subsets.find(6001, 5, 1000).empty());
  EXPECT_GE(subsets.steps(), 1000);
  EXPECT_LE(subsets.steps(), 2100);
}

}  // namespace
}  // namespace hone
