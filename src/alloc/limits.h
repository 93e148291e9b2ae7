#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "base/progress.h"

namespace hone {

// Limits say when a placer gives up: at a moment, after a number of steps, or when it is cancelled.
// Placers count their steps here, and ask from time to time.
class Limits {
 public:
  Limits() = default;
  Limits(double seconds, int64_t nodes, const CancelToken* cancel) : cancel_(cancel) {
    if (seconds > 0 && seconds < kMostSeconds)
      end_ = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    if (nodes > 0) nodes_left_ = nodes;
  }

  // A part of other limits, with its own number of steps. The whole counts these steps, too.
  Limits(int64_t nodes, Limits& whole) : nodes_left_(nodes), whole_(&whole) {}

  // Looks at the clock at once: for long work that counts no steps.
  bool is_late() {
    since_look_ = kStepsPerLook;
    return over();
  }

  // Counts steps. True as soon as a limit is reached, and from then on.
  bool over(int64_t steps = 0) {
    if (whole_) is_over_ |= whole_->over(steps);
    nodes_left_ -= steps;
    since_look_ += steps + 1;
    if (since_look_ >= kStepsPerLook) look();
    return is_over_ || nodes_left_ < 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kMostSeconds =
      1e9;  // 30 years: a larger number is not a limit, and does not fit the clock
  static constexpr int64_t kStepsPerLook = 64;  // some tenths of a millisecond of search

  void look() {
    since_look_ = 0;
    is_over_ |= (cancel_ && cancel_->cancelled()) ||
                (end_ != Clock::time_point::max() && Clock::now() >= end_);
  }

  Clock::time_point end_ = Clock::time_point::max();
  int64_t nodes_left_ = std::numeric_limits<int64_t>::max();
  int64_t since_look_ = kStepsPerLook;
  bool is_over_ = false;
  const CancelToken* cancel_ = nullptr;
  Limits* whole_ = nullptr;
};

}  // namespace hone
