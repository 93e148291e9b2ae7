#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "target/system.h"
#include "target/topology.h"
#include "timeline/jobs.h"

// One program for all devices of a System. Devices that do the same at the same time become one:
// their jobs are simulated once, so thousands of devices take hardly longer than a few.

namespace hone {

// A job of each device of a set. A job that it waits for counts if it exists.
struct DeviceJob {
  static constexpr uint32_t kNoPattern = UINT32_MAX;
  static constexpr uint32_t kAll = UINT32_MAX;

  uint32_t doers = kAll;  // a set of devices
  uint32_t queue = 0;     // computing: one of the device; kNoQueue: takes no time
  int32_t priority = 0;
  std::vector<double> seconds = {};  // of computing, by the target of the device, or one for all
  uint32_t pattern = kNoPattern;     // a message: to whom
  double bytes = 0;
  std::vector<uint32_t> after = {};  // jobs of the same device
  std::vector<uint32_t> got = {};    // messages to this device, if there is somebody who sends them
  std::vector<uint32_t> there = {};  // of a message: jobs of the device that it goes to
};

// To whom each device sends; to nobody: kNobody. No two send to the same one.
using Pattern = std::vector<uint32_t>;
inline constexpr uint32_t kNobody = UINT32_MAX;

struct SharedProgram {
  uint32_t queues = 1;  // of each device
  std::vector<Pattern> patterns = {};
  std::vector<std::vector<bool>> sets = {};  // of devices
  std::vector<DeviceJob> jobs = {};
};

// Devices and links by classes. Devices of a class have the same target, are in the same sets, and
// send to devices of the same classes over links of the same classes. Links of a class are equal,
// and are crossed by as many messages of each class of senders and each pattern.
struct Classes {
  std::vector<uint32_t> of_device, of_link;
  uint32_t devices = 0, links = 0;  // classes
};

// The jobs of one device of each class, or with `merge` off of each device.
struct ClassJobs {
  Classes classes;
  Jobs jobs;
  std::vector<uint32_t> numbers;  // of each job, in the program: ascending within a class
  std::vector<uint32_t> first;    // the first job of each class, and behind them the end

  // The job of a device, which is one of its doers.
  uint32_t job(int64_t device, uint32_t number) const;
};
// Over the limit if they are more than `most`.
Result<ClassJobs> class_jobs(const SharedProgram& program, const System& system, bool merge = true,
                             size_t most = kMaxJobs);

inline constexpr uint64_t kMostSends = uint64_t{1} << 23;  // devices times patterns

}  // namespace hone
