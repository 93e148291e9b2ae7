#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"

// The line through measured times of messages: a latency and a bandwidth, as a System has them.

namespace hone {

struct MessageTime {
  int64_t bytes = 0;
  double seconds = 0;
};

struct LinkFit {
  double latency = 0;           // seconds, at least 0
  double bytes_per_second = 0;  // above 0
  // The line's times against the measured ones, as parts of these.
  double median_error = 0;
  double worst_error = 0;
  int64_t worst_bytes = 0;  // the message of the worst error

  double seconds(int64_t bytes) const {
    return latency + static_cast<double>(bytes) / bytes_per_second;
  }
};

// Least squares of the relative errors, so that short messages count as much as long ones. Error:
// the messages have fewer than two sizes, or a time is not above 0.
Result<LinkFit> fit_link(std::span<const MessageTime> times);

}  // namespace hone
