#pragma once

#include <vector>

#include "program/tiles/tiles.h"

namespace hone {

// In order of first appearance: in buffers, indices, then statements. A kernel gets their values in
// this order.
std::vector<Symbol> symbols_of(const TileProgram& program);

// Replaces the bound symbols. Each value must fit its symbol. An error if a type becomes too large.
Result<TileProgram> specialize(const TileProgram& program, const Bindings& bindings);

}  // namespace hone
