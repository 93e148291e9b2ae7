#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// A body of one ordered op (OpClass): its points are not computed one by one.
TileProgram build_ordered(const KernelBody& body, std::string_view name);

}  // namespace hone
