#pragma once

#include <unordered_map>
#include <vector>

#include "program/frame.h"

namespace hone::program {

// Places all frames in one arena: the memory of a frame begins at the place that the command gives
// it.
class ArenaLayout {
 public:
  explicit ArenaLayout(const Program& program);

  const FrameMemory& memory(const Frame& frame) const { return frames_.at(&frame).memory; }
  // The frame's temporaries, and the memory of its commands: the largest of these. One number, if
  // sizes are numbers.
  const std::vector<Dim>& bytes(const Frame& frame) const { return frames_.at(&frame).bytes; }

 private:
  struct Entry {
    FrameMemory memory;
    std::vector<Dim> bytes;
  };
  std::unordered_map<const Frame*, Entry> frames_;
};

}  // namespace hone::program
