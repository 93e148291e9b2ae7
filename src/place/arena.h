#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "alloc/plan_memory.h"
#include "place/judge.h"

// The memory of devices as the memory planner lays it out (alloc/plan_memory.h). A sum of bytes is
// too much where lives do not meet, and the peak is too little where holes are of no use. So it is
// known of a whole placement alone whether it fits.

namespace hone {

// The arena of one device. It holds at each tick what the peak counts
// (timeline/held_memory.h). Weights that nodes hold are there all the time. Tensors and scratch
// have offsets behind them, at the alignment that compiled programs have.
struct DeviceArena {
  uint32_t device = 0;
  MemoryVerdict verdict = MemoryVerdict::placed;
  // Weights and the arena that was found. If none was found: as many as are known to be needed.
  int64_t bytes = 0;
  // If none was found: nodes on the device that make, use or hold what is too much, ascending.
  std::vector<uint32_t> nodes = {};

  bool fits() const { return verdict == MemoryVerdict::placed; }
};

// The timeline is that of the placement. Over the limit: bytes that cannot be added up.
Result<DeviceArena> device_arena(const PlaceJudge& judge, const DevicePlacement& placement,
                                 const PlaceTimeline& timeline, uint32_t device,
                                 const CancelToken* cancel = nullptr);

// The arena of the first device for which none was found; none: all fit. Later ones are not laid
// out. The timeline may be too long, too.
Result<std::optional<DeviceArena>> first_full_arena(const PlaceJudge& judge,
                                                    const DevicePlacement& placement,
                                                    const CancelToken* cancel = nullptr);

// True if all of them fit; an error names the first device that has none, by how much it is too
// small, as far as that is known, and nodes. The placement has passed check().
Status check_arenas(const PlaceJudge& judge, const DevicePlacement& placement);

}  // namespace hone
