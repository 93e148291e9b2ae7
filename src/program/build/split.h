#pragma once

#include <vector>

#include "kernel/matrix.h"
#include "program/tiles/tile_builder.h"

namespace hone {

// Two f32 numbers as words of pairs of bf16, one word a part: the parts of a number, each taken
// from what those before it leave. If parts add up to the number exactly they are cut off.
// Otherwise each is rounded to the nearest, since cut ones would all be too small, and errors of
// one sign add up. A product within 2^-7 of leaving f32 may leave it. An infinity or NaN is the
// last part, behind a first one of 1 with its sign. So it meets each factor of the other number
// once, and no zero of their parts.
std::vector<tile::Scalar> split_pair(TileBuilder& tiles, tile::Scalar first, tile::Scalar second,
                                     const MatrixNumbers& numbers);

// The parts of one f32 number, as bf16.
std::vector<tile::Scalar> split_number(TileBuilder& tiles, tile::Scalar number,
                                       const MatrixNumbers& numbers);

}  // namespace hone
