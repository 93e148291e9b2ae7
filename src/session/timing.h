#pragma once

#include "base/error.h"
#include "base/progress.h"

#include <functional>
#include <string>
#include <vector>

namespace hone {

// How long something took each time, in order of size.
struct Timing {
  std::vector<double> seconds;

  double median() const;
  double part(double fraction) const;  // so much of the samples took at most this
  std::string to_string() const;       // "median 12 ms, 10% 11.8 ms, 90% 13 ms, of 83 runs"
};

Result<double> measure_once(const std::function<Status()>& run);  // seconds
// Calls `run` until the time is over, at least three times.
Result<Timing> measure(double seconds, const CancelToken& cancel,
                       const std::function<Status()>& run);

}  // namespace hone
