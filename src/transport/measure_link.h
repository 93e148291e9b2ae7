#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "transport/link_fit.h"
#include "transport/transport.h"

// Times of messages between two devices, which two threads or two processes drive. One of them
// asks, the other one answers.

namespace hone {

inline constexpr int64_t kMostMeasuredBytes = 64 << 20;  // of a message
inline constexpr int64_t kMostWindowBytes = 1 << 20;     // of a message of a window
inline constexpr int32_t kWindow = 32;                   // messages that are on their way at once

struct MeasureLinkOptions {
  double seconds = 1;                   // in all; each size is measured some times in any case
  Progress* progress = &no_progress();  // counts the sizes: kMeasuredSizes
  const CancelToken* cancel = nullptr;
};

// Medians, from 1 byte on, each size four times the one before.
struct LinkTimes {
  std::vector<MessageTime> alone;       // half of a round trip
  std::vector<MessageTime> in_windows;  // the part of one message in a window
};
inline constexpr int64_t kMeasuredSizes = 14 + 11;

// Called by the thread of device `from`. If it fails, the run of the transport has ended.
Result<LinkTimes> measure_link(Transport& transport, int32_t from, int32_t to,
                               const MeasureLinkOptions& options);
// The bytes per second of windows of long messages.
Result<double> measure_rate(Transport& transport, int32_t from, int32_t to,
                            const MeasureLinkOptions& options);
// Called by the thread of device `to`: returns when the other one has measured all.
Status answer_link(Transport& transport, int32_t from, int32_t to);

// The bytes per second that this many copies of memory reach together, each by a thread of its own.
double copy_rate(int32_t threads, double seconds);

}  // namespace hone
