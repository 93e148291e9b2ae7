#pragma once

#include <cstdint>
#include <vector>

#include "place/judge.h"

// The memory of devices as the memory planner lays it out (alloc/plan_memory.h). A sum of bytes is
// too much where lives do not meet, and the peak is too little where holes are of no use. So it is
// known of a whole placement alone whether it fits.

namespace hone {

// The arena of one device. Its nodes run one after another, in the order of the timeline. Weights
// that they hold are there all the time. Tensors and scratch have offsets behind them, at the
// alignment that compiled programs have.
struct DeviceArena {
  bool fits = true;
  // Weights and the arena that was found. If no arena fits: as many as are known to be needed.
  int64_t bytes = 0;
  // If it does not fit: nodes on the device that make, use or hold what is too much, ascending.
  std::vector<uint32_t> nodes = {};
};

// The arena of each device. The timeline is that of the placement. Over the limit: bytes that
// cannot be added up.
Result<std::vector<DeviceArena>> device_arenas(const PlaceJudge& judge,
                                               const DevicePlacement& placement,
                                               const PlaceTimeline& timeline);

// True if all of them fit; an error says which one does not, by how much, and names nodes. The
// placement has passed check(). Over the limit, too: the times are more than a timeline takes.
Status check_arenas(const PlaceJudge& judge, const DevicePlacement& placement);

}  // namespace hone
