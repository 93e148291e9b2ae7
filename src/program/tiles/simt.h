#pragma once

#include "program/tiles/tiles.h"

namespace hone {

// The program as thousands of threads run it that have no vectors, as those of a GPU: each trip of
// the threads loops is one thread's. Each phase is a threads or blocks loop, and no loop is
// Exec::lanes.
//
//   threads i in 8 { unroll j in 4 { lanes k in 16 { BODY } } }
//   threads i in 8 { threads j in 4 { threads k in 16 { BODY } } }
//
// A phase of blocks loops stays one. Unroll and lanes loops that hold all of a phase become threads
// loops. They do not if the phase uses scratch, or if two of their trips may store to one byte.
// Where there are many threads without them, unroll loops stay: their trips are registers of one
// thread. Other lanes loops, and unroll loops that carry values, run trip by trip.
//
// Sizes decide, so the form of a program with open sizes is taken before they are bound.
//
// The results are bit for bit those that interpret() gives for the program, but for what the
// instructions of a machine round otherwise. The form of a form is that form.
TileProgram simt_form(const TileProgram& program);

}  // namespace hone
