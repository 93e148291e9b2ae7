#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

namespace hone {

// The seconds since some moment.
using SecondsClock = std::function<double()>;

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A time for steps that take about as long as one another. Whoever asks before each of them takes
// no more time than there is: a step begins only where the longest of those before it still fits.
class TimeBudget {
 public:
  explicit TimeBudget(double seconds, SecondsClock now = steady_seconds)
      : seconds_(seconds), now_(std::move(now)), began_(now_()) {}

  double elapsed() const { return now_() - began_; }
  double left() const { return seconds_ - elapsed(); }
  bool has_time_for_step() const { return left() > 0 && left() >= longest_; }
  // Runs a step, and remembers how long it took.
  template <class Step>
  auto step(const Step& run) {
    const double before = now_();
    auto result = run();
    longest_ = std::max(longest_, now_() - before);
    return result;
  }

 private:
  const double seconds_;
  const SecondsClock now_;
  const double began_;
  double longest_ = 0;
};

}  // namespace hone
