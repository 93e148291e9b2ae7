#pragma once

#include <cstdint>

namespace hone {

// Compiled code has one function per phase of a kernel. It runs the trips [begin, end) of the
// phase's threads loops, which are counted together, the innermost fastest; a phase without threads
// loops has the one trip 0. `buffers` are the buffers of the TileProgram without scratch, `symbols`
// the values of its symbols, `scratch` this thread's memory, aligned to 64 bytes.
//
// Buffers do not overlap, with two exceptions: inputs may overlap each other, and an output may be
// all of the input that is its donor.
using PhaseFn = void (*)(void* const* buffers, const int64_t* symbols, void* scratch, int64_t begin,
                         int64_t end);

// Buffers in an arena, and scratch, are aligned to this. Others are aligned to their element type.
inline constexpr int64_t kBufferAlignment = 64;

}  // namespace hone
