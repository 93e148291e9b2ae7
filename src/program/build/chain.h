#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// The results block by block, each in stages (plan/stages.h). The schedule fits.
TileProgram build_chain(const KernelBody& body, const Schedule& schedule, std::string_view name);

}  // namespace hone
