#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// Builds a chain: the results block by block, each block in stages (kernel/stages.h). The schedule
// fits.
TileProgram build_chain(const KernelBody& body, const Schedule& schedule, std::string_view name);

}  // namespace hone
