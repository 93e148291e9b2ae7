#pragma once

#include <vector>

#include "program/tiles/tiles.h"

namespace hone {

// In order of first appearance: in buffers, indices, then statements. A kernel gets their values in
// this order.
std::vector<Symbol> symbols_of(const TileProgram& program);

// Replaces the symbols that are bound. Each value must fit its symbol; what comes of it may be too
// large to be a type.
Result<TileProgram> specialize(const TileProgram& program, const Bindings& bindings);

}  // namespace hone
