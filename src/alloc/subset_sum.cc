#include "alloc/subset_sum.h"

#include <bit>
#include <numeric>

#include "base/error.h"

namespace hone {

void SubsetSum::set(std::span<const int64_t> numbers) {
  HONE_CHECK(numbers.size() <= kMostNumbers, "{} numbers", numbers.size());
  all_ = std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
  const size_t half = numbers.size() / 2;
  add_up(numbers.first(half), 1, lower_);
  add_up(numbers.subspan(half), uint32_t{1} << half, upper_);
}

// Each number doubles the list: those without it and those with it are merged.
void SubsetSum::add_up(std::span<const int64_t> numbers, uint32_t first, std::vector<Sum>& sums) {
  sums = {{0, 0}};
  for (uint32_t place = first; const int64_t number : numbers) {
    merged_.clear();
    const auto add = [&](const Sum& sum) {
      if (merged_.empty() || merged_.back().sum != sum.sum)
        merged_.push_back(sum);
      else if (std::popcount(sum.places) < std::popcount(merged_.back().places))
        merged_.back() = sum;
    };
    auto with = sums.begin();
    for (const Sum& without : sums) {
      for (; with->sum + number <= without.sum; ++with)
        add({with->sum + number, with->places | place});
      add(without);
    }
    for (; with != sums.end(); ++with) add({with->sum + number, with->places | place});
    sums.swap(merged_);
    place <<= 1;
  }
}

std::span<const int32_t> SubsetSum::find(int64_t sum) {
  uint32_t best = 0;
  auto high = upper_.rbegin();
  for (const Sum& low : lower_) {
    while (high != upper_.rend() && low.sum + high->sum > sum) ++high;
    if (high == upper_.rend()) break;
    const uint32_t places = low.places | high->places;
    if (low.sum + high->sum == sum && (best == 0 || std::popcount(places) < std::popcount(best)))
      best = places;
  }
  places_.clear();
  for (; best != 0; best &= best - 1) places_.push_back(std::countr_zero(best));
  return places_;
}

}  // namespace hone
