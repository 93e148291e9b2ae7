#include "alloc/subset_sum.h"

#include <algorithm>
#include <functional>

namespace hone {

void SubsetSum::set(std::span<const int64_t> numbers) {
  numbers_.assign(numbers.begin(), numbers.end());
  rest_.assign(numbers.size() + 1, 0);
  for (size_t i = numbers.size(); i-- > 0;) rest_[i] = rest_[i + 1] + numbers[i];
}

std::span<const int32_t> SubsetSum::find(int64_t sum, int most, int64_t steps) {
  places_.clear();
  last_step_ = steps_ + steps;
  if (!add(sum, most, 0)) places_.clear();
  return places_;
}

// What is missing, of the numbers from a place on.
bool SubsetSum::add(int64_t sum, int most, size_t from) {
  if (sum == 0) return true;
  if (most == 1) {
    const auto first = numbers_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto at = std::ranges::lower_bound(first, numbers_.end(), sum, std::greater());
    ++steps_;
    if (at == numbers_.end() || *at != sum) return false;
    places_.push_back(static_cast<int32_t>(at - numbers_.begin()));
    return true;
  }
  for (size_t i = from; i < numbers_.size(); ++i) {
    if (++steps_ > last_step_ || rest_[i] < sum) return false;
    if (numbers_[i] > sum) continue;
    if (numbers_[i] <= (sum - 1) / most) return false;  // so many of these are too small
    places_.push_back(static_cast<int32_t>(i));
    if (add(sum - numbers_[i], most - 1, i + 1)) return true;
    places_.pop_back();
  }
  return false;
}

}  // namespace hone
