#pragma once

#include <string_view>

#include "plan/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// A group around one contraction, in blocks that stay in a cache and tiles that stay in registers.
// The schedule fits.
TileProgram build_gemm(const KernelBody& body, const Schedule& schedule, std::string_view name);

}  // namespace hone
