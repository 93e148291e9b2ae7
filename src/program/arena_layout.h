#pragma once

#include <unordered_map>

#include "program/frame.h"

namespace hone::program {

// Places all frames in one arena: the memory of a frame begins at the place that the command gives
// it. Sizes are numbers.
class ArenaLayout {
 public:
  explicit ArenaLayout(const Program& program);

  const FrameMemory& memory(const Frame& frame) const { return frames_.at(&frame).memory; }
  // The frame's temporaries, and the memory of its commands.
  int64_t bytes(const Frame& frame) const { return frames_.at(&frame).bytes; }

 private:
  struct Entry {
    FrameMemory memory;
    int64_t bytes = 0;
  };
  std::unordered_map<const Frame*, Entry> frames_;
};

}  // namespace hone::program
