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

// A job of each device.
struct DeviceJob {
  static constexpr uint32_t kNoPattern = UINT32_MAX;

  uint32_t queue = 0;  // computing: one of the device
  int32_t priority = 0;
  std::vector<double> seconds = {};  // of computing, by the target of the device, or one for all
  uint32_t pattern = kNoPattern;     // a message: to whom
  double bytes = 0;
  std::vector<uint32_t> after = {};  // jobs of the same device
  std::vector<uint32_t> got = {};    // messages to this device, if there is somebody who sends them
};

// To whom each device sends; to nobody: kNobody. No two send to the same one.
using Pattern = std::vector<uint32_t>;
inline constexpr uint32_t kNobody = UINT32_MAX;

struct SharedProgram {
  uint32_t queues = 1;  // of each device
  std::vector<Pattern> patterns = {};
  std::vector<DeviceJob> jobs = {};
};

// Devices and links by classes. Devices of a class have the same target, and send to devices of the
// same classes over links of the same classes. Links of a class are equal, and are crossed by as
// many messages of each class of senders and each pattern.
struct Classes {
  std::vector<uint32_t> of_device, of_link;
  uint32_t devices = 0, links = 0;  // classes
};

// The jobs of one device of each class, or with `merge` off of each device.
struct ClassJobs {
  Classes classes;
  Jobs jobs;
  uint32_t per_device = 0;

  uint32_t job(int64_t device, uint32_t number) const {
    return classes.of_device[static_cast<size_t>(device)] * per_device + number;
  }
};
Result<ClassJobs> class_jobs(const SharedProgram& program, const System& system, bool merge = true);

}  // namespace hone
