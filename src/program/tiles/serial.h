#pragma once

#include "program/tiles/tiles.h"

namespace hone {

// The program with each block of threads as one thread, as a CPU runs it. The threads of a block
// take turns between barriers, so a barrier comes to nothing. Memory of a block becomes scratch,
// and so does that of each of its threads. Programs without blocks loops stay as they are.
//
// The results are bit for bit those that interpret() gives for the program.
TileProgram serial_form(const TileProgram& program);

}  // namespace hone
