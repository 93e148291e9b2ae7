#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/build/point_builder.h"
#include "program/tiles/tiles.h"

namespace hone {

// Builds a gemm: a group around one contraction, in blocks that stay in a cache and tiles that stay
// in registers. The schedule fits.
TileProgram build_gemm(const KernelBody& body, const Schedule& schedule, std::string_view name);
// The same as a stage of a chain.
void build_gemm(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles);

}  // namespace hone
