#pragma once

#include <cstddef>
#include <optional>

#include "cost/cost.h"
#include "log/log.h"
#include "target/target.h"

namespace hone {

// How good a price is for the kernels that were measured on this machine.
struct LogVerdict {
  size_t kernels = 0, schedules = 0;
  double regret = 0;  // of the first schedule by price, over the fastest: 0.03 is 3 %; a mean
  double tau = 0;     // of the order of a kernel's schedules; a mean
};

// Judges by the latest `most` kernels of the log with a time of kLeastOfVerdict schedules under the
// same conditions, on the target by one thread. Records that this version of hone does not take
// count as absent.
Result<LogVerdict> judge_by_log(const Log& log, const Target& target, const Cost& cost,
                                size_t most);
inline constexpr size_t kLeastOfVerdict = 4;

}  // namespace hone
