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

// Numbers of f32 that tensor cores multiply in parts as accurately as f32 does, times kTamed: 0,
// and those from 2^-90 on and below 2^20. Their parts are 0 or at least 2^-73, normal numbers of
// bf16. Products of two numbers are at least 2^-100, so what is lost below 2^-126, the least normal
// number, is less than 2^-26 of one. They are below 2^120, so 64 of them add up to less than f32
// has. All other numbers are wild, infinities and NaN as well.
inline constexpr int64_t kTameExponents[] = {-90, 20};
inline constexpr double kTamed = 0x1p40;
// A u32: 1 if the number is wild, else 0.
tile::Scalar is_wild(TileBuilder& tiles, tile::Scalar number);
// The parts of a tame number times kTamed, as bf16.
std::vector<tile::Scalar> split_tame(TileBuilder& tiles, tile::Scalar number,
                                     const MatrixNumbers& numbers);

}  // namespace hone
