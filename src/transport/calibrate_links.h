#pragma once

#include <string_view>

#include "target/system.h"
#include "transport/local_group.h"
#include "transport/measure_link.h"

// The links of this machine, as messages of each transport find them.

namespace hone {

struct LinkCalibration {
  TransportKind transport = TransportKind::threads;
  LinkFit alone;         // of one message at a time
  LinkFit in_windows;    // its latency is the gap between messages of one sender
  double one_pair = 0;   // bytes per second of long messages, between two devices
  double two_pairs = 0;  // and of two pairs of devices at once, together
};

// Takes about the seconds of the options, on a quiet machine.
Result<LinkCalibration> calibrate_links(TransportKind transport, const MeasureLinkOptions& options);

// The same over a transport that is there, by the thread of device `from`. Its two pairs are the
// one. Meanwhile the thread of device `to` answers.
Result<LinkCalibration> calibrate_link(TransportKind kind, Transport& transport, int32_t from,
                                       int32_t to, const MeasureLinkOptions& options);
Status answer_calibration(Transport& transport, int32_t from, int32_t to);

// The parts of the target, one for each device, with these links between them. A star carries one
// message as fast as was measured, and all pairs share a bus. All routes are equally long.
Result<System> calibrated_system(const LinkCalibration& calibration, int64_t devices,
                                 const Target& target);

}  // namespace hone
