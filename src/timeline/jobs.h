#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/shares.h"

// The jobs that a timeline simulates, as plain data.

namespace hone {

// Computing on a queue, or a message over links.
struct Job {
  static constexpr uint32_t kNoQueue = UINT32_MAX;

  uint32_t queue = kNoQueue;  // computing: a job has the queue to itself
  int32_t priority = 0;       // a queue takes the ready job of highest priority; then the first
  double seconds = 0;         // of computing; of a message what passes after its last byte
  double bytes = 0;           // of a message
  std::vector<Crossing> route = {};
  std::vector<uint32_t> after = {};  // jobs that must have ended
};

struct Jobs {
  uint32_t queues = 0;
  std::vector<Link> links = {};
  std::vector<Job> jobs = {};
};

// True if the numbers make sense, no job waits for itself, and the whole takes less than
// kMaxTimeline. Errors name the job by its number.
Status check(const Jobs& jobs);

// The error of a job, or of all, that is longer: "job 3 takes".
Error too_long(std::string_view what, double seconds);

// A bound of the seconds that a job adds to the whole: what it takes with its links to itself.
double most_seconds(const Job& job, std::span<const Link> links);

inline constexpr double kMaxTimeline = 10 * 24 * 3600;  // seconds
inline constexpr double kMaxMessage = 0x1p62;           // bytes
inline constexpr size_t kMaxJobs = size_t{1} << 26;

}  // namespace hone
