#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace hone {

// A sum that depends on its numbers alone, not on their order: nothing is rounded until it is asked
// for, so a number that goes leaves no trace. The parts do not overlap (Shewchuk, Adaptive
// Precision Floating-Point Arithmetic, 1997); numbers of similar size give two or three.
class ExactSum {
 public:
  // Numbers that are not finite, or nearly so, count as infinite.
  void add(double number) {
    if (is_large(number))
      ++infinite_;
    else
      change(number);
  }
  // A number that was added.
  void remove(double number) {
    if (is_large(number))
      --infinite_;
    else
      change(-number);
  }

  // The nearest double; of two, the even one.
  double value() const {
    if (infinite_ > 0) return INFINITY;
    if (parts_.empty()) return 0;
    size_t i = parts_.size() - 1;
    double sum = parts_[i], rest = 0;
    while (i > 0 && rest == 0) {
      const double before = sum, part = parts_[--i];
      sum = before + part;
      rest = part - (sum - before);
    }
    // Half a unit was rounded to even, and the parts below say which way it has to go.
    if (i > 0 && rest != 0 && (rest < 0) == (parts_[i - 1] < 0)) {
      const double twice = 2 * rest, other = sum + twice;
      if (twice == other - sum) sum = other;
    }
    return sum;
  }

 private:
  static bool is_large(double number) { return !(std::abs(number) < 1e300); }

  void change(double number) {
    size_t kept = 0;
    for (double part : parts_) {
      if (std::abs(number) < std::abs(part)) std::swap(number, part);
      const double sum = number + part, rest = part - (sum - number);
      if (rest != 0) parts_[kept++] = rest;
      number = sum;
    }
    parts_.resize(kept);
    if (number != 0) parts_.push_back(number);
  }

  std::vector<double> parts_;  // the smallest first
  int64_t infinite_ = 0;
};

}  // namespace hone
