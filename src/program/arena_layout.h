#pragma once

#include <unordered_map>

#include "program/frame.h"

namespace hone::program {

// How frames share one arena: the memory of a frame begins where the command that runs it says.
// Sizes are numbers.
class ArenaLayout {
 public:
  explicit ArenaLayout(const Program& program);

  const Memory& memory(const Frame& frame) const { return frames_.at(&frame).memory; }
  // With all that its commands need.
  int64_t bytes(const Frame& frame) const { return frames_.at(&frame).bytes; }

 private:
  struct Entry {
    Memory memory;
    int64_t bytes = 0;
  };
  std::unordered_map<const Frame*, Entry> frames_;
};

}  // namespace hone::program
