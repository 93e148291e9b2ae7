#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// Which of some numbers add up to a sum, if that is found in few steps.
class SubsetSum {
 public:
  // Positive, the largest first.
  void set(std::span<const int64_t> numbers);

  int64_t all() const { return rest_.front(); }
  // The places of at most so many that add up to the sum, which is not 0; none if that is given up.
  std::span<const int32_t> find(int64_t sum, int most, int64_t steps);
  int64_t steps() const { return steps_; }  // of all searches

 private:
  bool add(int64_t sum, int most, size_t from);

  std::vector<int64_t> numbers_;
  std::vector<int64_t> rest_ = {0};  // from each place on
  std::vector<int32_t> places_;
  int64_t steps_ = 0, last_step_ = 0;
};

}  // namespace hone
