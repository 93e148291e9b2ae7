#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program/tiles/interpret.h"

namespace hone {

// Counts how the warps of blocks use memory. The threads of a warp note their accesses one after
// the other. First accesses of a statement belong together, and so do the second ones of each
// thread.
class AccessCounter {
 public:
  // Null: it counts nothing.
  AccessCounter(const TileProgram& program, SimtCounts* counts)
      : program_(program), counts_(counts) {}

  void next_thread() { visits_.clear(); }
  // An access to this many neighbours, from the element on.
  void note(const void* statement, tile::BufferId buffer, size_t element, int64_t count);
  void end_warp();

 private:
  void count_turns(const std::vector<int64_t>& places, int64_t width);
  void count_sectors(const std::vector<int64_t>& places, int64_t width);

  struct Access {
    tile::BufferId buffer = 0;
    int64_t width = 0;                 // bits
    std::vector<int64_t> places = {};  // in bytes, by thread
  };
  const TileProgram& program_;
  SimtCounts* const counts_;
  std::map<std::pair<const void*, int64_t>, Access> accesses_;  // of a warp, by statement and visit
  std::map<const void*, int64_t> visits_;                       // of a thread
};

}  // namespace hone
