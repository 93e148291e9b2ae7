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

// The trips of the phase's threads loops, or of its blocks loops, counted together; 1 without any.
Dim trips_of(const tile::Loop& phase, const TileProgram& program);

// Threads of a block: as many as the threads loops of the phase have trips, in whole warps. 0 if
// the phase has no blocks loops.
int64_t block_threads(const tile::Loop& phase, const TileProgram& program);

// The bytes that a block has for its buffers of role `block`, and the place of each in them.
struct ChipLayout {
  std::vector<int64_t> offsets;  // per buffer of the program; 0 except of those
  int64_t bytes = 0;
};
ChipLayout chip_layout(const TileProgram& program);

}  // namespace hone
