#pragma once

#include <string_view>

#include "kernel/kernel_body.h"
#include "program/tiles/tiles.h"

namespace hone {

// Ops whose points are not computed one by one: cumulative, scatter, sort.
bool is_ordered(Opcode opcode);
TileProgram build_ordered(const KernelBody& body, std::string_view name);

}  // namespace hone
