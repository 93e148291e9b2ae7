#pragma once

#include <memory>
#include <string>

#include "cost/cost.h"
#include "log/log.h"
#include "target/target.h"

namespace hone {

// The times of launches in the log. A launch has the last measurement of its schedule and kernel,
// on this target, by the threads that are asked about, and under the conditions of the kernel's
// last measurement. Times of weights in a cache and in memory do not compare. A launch that was not
// measured has the price of another Cost; of a kernel that was, in proportion: times the median of
// time / price of its measured schedules. Measurements change, so nothing that was chosen by them
// is kept.
Result<std::shared_ptr<const Cost>> measured_cost(const Log& log, const Target& target,
                                                  std::shared_ptr<const Cost> otherwise);

}  // namespace hone
