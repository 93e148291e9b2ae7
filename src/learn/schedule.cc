#include "learn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hone {

RateSchedule constant_rate(double rate) {
  return [rate](int64_t) { return rate; };
}

RateSchedule decaying_rate(double rate, int64_t steps, double factor) {
  return [rate, steps = std::max<int64_t>(steps, 1), factor](int64_t step) {
    return rate * std::pow(factor, static_cast<double>(step / steps));
  };
}

RateSchedule cosine_rate(double highest, int64_t warmup, int64_t total, double last) {
  return [=](int64_t step) {
    if (step < warmup) return highest * static_cast<double>(step + 1) / static_cast<double>(warmup);
    if (step >= total) return last;
    const double done = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
    return last + (highest - last) * 0.5 * (1 + std::cos(std::numbers::pi * done));
  };
}

}  // namespace hone
