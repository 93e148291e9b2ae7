#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "ir/op_def.h"
#include "program/tiles/tiles.h"

namespace hone {

// A primitive op as its access relation says it: a loop per dim, one point after another. It serves
// every op and element type; others are built only to be faster. Inputs are the operands that are
// there, in order, "x0", "x1", ...; outputs the results, "y0", ...
//
// Sums of 16-bit reals are kept in f32. Opaque ops (control flow, collectives) are refused: they
// are commands of a program.
Result<TileProgram> build_generic(const Application& application, std::span<const Type> results,
                                  std::string_view name);

}  // namespace hone
