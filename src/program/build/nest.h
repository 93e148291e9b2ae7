#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/build/point_builder.h"
#include "program/tiles/tiles.h"

namespace hone {

// Builds a nest: loops over the elements of the results, with everything computed at their points
// (PointBuilder). The schedule fits.
TileProgram build_nest(const KernelBody& body, const Schedule& schedule, std::string_view name);
// The same as a stage of a chain.
void build_nest(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles);

}  // namespace hone
