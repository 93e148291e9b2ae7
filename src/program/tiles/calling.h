#pragma once

#include <vector>

#include "program/tiles/tiles.h"

// What callers of a kernel and its code agree on, beside the symbols (bind.h).

namespace hone {

// Of a tensor in memory. Sub-byte types are packed.
Dim bytes_of(Type type);

// Where scratch buffers lie in a thread's scratch memory, in bytes; each is aligned to 64.
struct ScratchLayout {
  std::vector<Dim> offsets;  // per buffer of the program; of those that are no scratch 0
  Dim bytes = 0;
};
ScratchLayout scratch_layout(const TileProgram& program);

// The trips of the phase's threads loops, counted together; 1 without any.
Dim trips_of(const tile::Loop& phase, const TileProgram& program);

}  // namespace hone
