#pragma once

#include <vector>

#include "program/tiles/tile_builder.h"

namespace hone {

// Two f32 numbers as words of pairs of bf16, one word a part: the parts of a number, each cut from
// what those before it leave, add up to it exactly. An infinity or NaN is the last part, behind a
// first one of 1 with its sign: so it meets each factor of the other number once, and no zero of
// their parts.
std::vector<tile::Scalar> split_pair(TileBuilder& tiles, tile::Scalar first, tile::Scalar second,
                                     int64_t parts);

}  // namespace hone
