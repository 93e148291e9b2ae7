#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "timeline/timeline.h"

// The memory that devices hold over the time of a timeline.

namespace hone {

// Memory of a device, from the start of the job that makes it to the end of the last job that uses
// it.
struct HeldBuffer {
  static constexpr uint32_t kNoJob = UINT32_MAX;

  uint32_t device = 0;
  int64_t bytes = 0;
  uint32_t maker = kNoJob;           // none: it is there from the beginning
  std::vector<uint32_t> users = {};  // none: it stays to the end
};

// The ticks at which a buffer is made and freed; equal ones: it is there for a moment.
struct HeldTime {
  Ticks begin, end;
};
HeldTime held_time(const Timeline& timeline, const HeldBuffer& buffer);

struct HeldMemory {
  int64_t peak = 0;                                   // bytes
  Ticks at = 0;                                       // the first time of the peak
  std::vector<uint32_t> buffers = {};                 // those that are held then, ascending
  std::vector<std::pair<Ticks, int64_t>> curve = {};  // bytes from each tick at which they change
};

// The memory of each device. Jobs that end free their memory before others of the same tick start.
// A buffer of jobs that take no time is held for a moment and counts for the peak, not for the
// curve. Bad input for a buffer of a device or a job that there is not, or of more bytes than can
// be added up.
Result<std::vector<HeldMemory>> held_memory(const Timeline& timeline,
                                            std::span<const HeldBuffer> buffers, uint32_t devices);

}  // namespace hone
