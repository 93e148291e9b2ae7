#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "target/system.h"
#include "transport/collective.h"

// The time that collectives take on a System, by a timeline of their steps, and the choice of the
// schedule by it. Nothing is measured, and equal questions have equal answers.
//
// The groups do the same at once, by one schedule: those of an axis of a mesh, for example. They
// share links where their routes do.

namespace hone {

// From when all members begin to when the last one has its output. Errors: the schedule does not
// fit, or a group names a device that the system does not have.
Result<double> collective_seconds(std::span<const Collective> groups,
                                  const CollectiveSchedule& schedule, int64_t element_bytes,
                                  const System& system);

struct CollectivePrice {
  CollectiveSchedule schedule;
  double seconds = 0;
};

// All schedules that fit, the best one first, and of equals the one of fewer pieces, then that of
// the earlier row of collective.def. Schedules of several pieces are among them as long as they
// have at most kMostPiecedMessages messages. Over the limit if the pairs of permutes, or twice the
// square of the members of others, are more than kMostPricedMessages in all groups: some schedules
// have as many messages.
Result<std::vector<CollectivePrice>> collective_prices(std::span<const Collective> groups,
                                                       int64_t element_bytes, const System& system);
// The first of them.
Result<CollectivePrice> best_schedule(std::span<const Collective> groups, int64_t element_bytes,
                                      const System& system);

inline constexpr int32_t kTriedPieces[] = {1, 2, 4, 8};
inline constexpr int64_t kMostPiecedMessages = 2048;
inline constexpr int64_t kMostPricedMessages = 4096;

}  // namespace hone
