#pragma once

#include <span>
#include <string_view>

#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// Makes the TileProgram of a kernel. Every schedule that check_schedule() accepts can be built.
// Buffers: the parameters in order, "x0", ..., the outputs in order, "y0", ..., then shared and
// scratch ones. In place "y0" is an update, and there is no "x0".
// Sums of 16-bit reals are kept in f32. Nest and gemm multiply the padding of a conv as zeros, so a
// kernel element that is not finite makes NaN there; the generic algorithm skips it.
Result<TileProgram> build_kernel(const KernelBody& body, const Schedule& schedule,
                                 std::string_view name);

// The generic kernel of one op; parameters are the operands that are there, in order, and outputs
// all results. Opaque ops (control flow, collectives) are refused: they are commands of a program.
Result<TileProgram> build_generic(const Application& application, std::string_view name);

}  // namespace hone
