#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// Which of some numbers add up to a sum. The sums of each half are listed once, so that all subsets
// are looked through in the time of those of a half: some hundred steps of 16 numbers.
class SubsetSum {
 public:
  static constexpr size_t kMostNumbers = 20;

  void set(std::span<const int64_t> numbers);  // positive

  int64_t all() const { return all_; }
  // The places of the fewest; none if there are none.
  std::span<const int32_t> find(int64_t sum);
  // What a search takes.
  int64_t steps() const { return std::ssize(lower_) + std::ssize(upper_); }

 private:
  struct Sum {
    int64_t sum;
    uint32_t places;  // a bit each
  };

  void add_up(std::span<const int64_t> numbers, uint32_t first, std::vector<Sum>& sums);

  int64_t all_ = 0;
  std::vector<Sum> lower_, upper_, merged_;  // of each sum of a half the fewest, the least first
  std::vector<int32_t> places_;
};

}  // namespace hone
