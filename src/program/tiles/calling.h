#pragma once

#include <vector>

#include "program/tiles/tiles.h"

// The agreement between the callers of a kernel and its code, apart from the symbols (bind.h).

namespace hone {

// The bytes of a tensor in memory. Sub-byte types are packed.
Dim bytes_of(Type type);

// Where scratch buffers lie in a thread's scratch memory, in bytes; each is aligned to 64.
struct ScratchLayout {
  std::vector<Dim> offsets;  // per buffer of the program; 0 except of scratch
  Dim bytes = 0;
};
ScratchLayout scratch_layout(const TileProgram& program);

// The trips of the phase's threads loops, counted together; 1 without any.
Dim trips_of(const tile::Loop& phase, const TileProgram& program);

}  // namespace hone
