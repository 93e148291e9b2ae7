#pragma once

#include <cstdint>
#include <functional>

namespace hone {

// The rate of a step by its number, from 0 on. A pure function, so that resumed training goes on
// with the same rates.
using RateSchedule = std::function<double(int64_t step)>;

RateSchedule constant_rate(double rate);
// Multiplied by `factor` every `steps` steps.
RateSchedule decaying_rate(double rate, int64_t steps, double factor);
// Rises in a line over `warmup` steps, then falls along half a cosine until step `total`, where it
// stays at `last`.
RateSchedule cosine_rate(double highest, int64_t warmup, int64_t total, double last = 0);

}  // namespace hone
