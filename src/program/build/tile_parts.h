#pragma once

#include <span>
#include <vector>

#include "kernel/schedule.h"
#include "program/tiles/tile_builder.h"

namespace hone {

// A part of a dim: whole tiles of unroll x lanes points, or the rest that fills no tile, of the dim
// or of what lies between two cuts (KernelFacts::Loop). Its points are first + (trip * unroll + u)
// * lanes + lane, where they are below the extent.
struct TilePart {
  Dim trips;
  Dim first = 0;
  int64_t unroll = 1;
  int64_t lanes = 1;
  bool has_gaps = false;  // some points may be beyond the extent
  bool is_rest = false;   // of an open size: what an even number of whole tiles leaves

  IndexExpr point(const IndexExpr& trip, const IndexExpr& u, const IndexExpr& lane) const {
    return (trip * unroll + u) * lanes + lane + IndexExpr(first);
  }
};

// At least one; that of a dim without points has no trips. Lanes divide the cuts.
std::vector<TilePart> tile_parts(Dim extent, int64_t unroll, int64_t lanes,
                                 std::span<const int64_t> cuts = {});

// The same of a dim of any extent, without lanes: an even number of whole tiles, and as the rest
// one more, tiles of four, and single points.
std::vector<TilePart> open_tile_parts(const Dim& extent, int64_t tile);
// How many whole tiles come before the rest.
Dim tiles_before_rest(const Dim& extent, int64_t tile);

// The order of the loops over the points of a tile, from outside in. The dim in lanes is last, so
// that the numbers that one number is combined with stay in a few registers.
std::vector<int> tile_order(std::span<const int> order, std::span<const Tile> lanes);

// Opens a loop, unless it has one trip.
void open_loop(TileBuilder& tiles, Exec exec, std::string_view name, Dim extent,
               const std::function<void(IndexExpr)>& body);
// Opens a loop for each of these dims, called NAME0, NAME1, ...; without dims none.
void open_loops(TileBuilder& tiles, Exec exec, std::string_view name, std::span<const Dim> dims,
                const std::function<void(const TileBuilder::Indices&)>& body);
// A phase whose threads have a point of these dims each.
void each_point(TileBuilder& tiles, std::span<const Dim> dims,
                const std::function<void(const TileBuilder::Indices&)>& body);
tile::Scalar open_carry(TileBuilder& tiles, Exec exec, std::string_view name, Dim extent,
                        tile::Scalar initial, Opcode combine, const TileBuilder::Step& step,
                        std::optional<tile::Span> span = {});

}  // namespace hone
