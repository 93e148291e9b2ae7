#pragma once

#include <functional>
#include <span>

#include "runtime/job_threads.h"
#include "runtime/many_devices.h"

namespace hone {

// The work of a device in a run, by its number. The options have its place, and end it when another
// device has failed.
using RunOfDevice = std::function<Status(size_t device, const RunOptions& options)>;

// Runs all devices at the same time, each on a thread of its own. The first one that fails ends the
// others. The error is that of the cause, and names its device. The transport is that of the
// places; it may be null, and has an end if a device fails.
Status run_devices(std::span<const DeviceShare> devices, JobThreads& threads, Transport* transport,
                   const RunOptions& options, const RunOfDevice& run);

}  // namespace hone
