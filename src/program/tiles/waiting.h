#pragma once

#include "program/tiles/tiles.h"

namespace hone {

// The program, each phase of which waits for the kernels before it (tile::KernelWait), as late as
// it may. Blocks copy constants before that, where nothing is between. Phases are loops of threads
// or blocks (simt.h).
TileProgram waiting_form(TileProgram program);
bool has_wait(const tile::Loop& phase);

}  // namespace hone
