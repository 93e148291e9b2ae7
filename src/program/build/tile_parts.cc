#include "program/build/tile_parts.h"

#include "base/planted.h"

namespace hone {

std::vector<TilePart> tile_parts(Dim extent, int64_t unroll, int64_t lanes) {
  const int64_t tile = unroll * lanes;
  if (tile == 1) return {{.trips = extent}};
  if (!extent.is_static())
    return {{.trips = ceildiv(extent, tile), .unroll = unroll, .lanes = lanes, .has_gaps = true}};
  const int64_t whole = extent.value() / tile, rest = extent.value() % tile;
  std::vector<TilePart> parts;
  if (whole > 0 || rest == 0)
    parts.push_back({.trips = HONE_PLANT(whole_tiles, whole, whole > 1 ? whole - 1 : whole),
                     .unroll = unroll,
                     .lanes = lanes});
  if (rest > 0)
    parts.push_back({.trips = 1,
                     .first = whole * tile,
                     .unroll = (rest + lanes - 1) / lanes,
                     .lanes = lanes,
                     .has_gaps = rest % lanes != 0});
  return parts;
}

std::vector<int> tile_order(std::span<const int> order, std::span<const Tile> lanes) {
  std::vector<int> dims(order.begin(), order.end());
  for (const Tile& tile : lanes)
    if (std::erase(dims, tile.dim) > 0) dims.push_back(tile.dim);
  return dims;
}

void open_loop(TileBuilder& tiles, Exec exec, std::string_view name, Dim extent,
               const std::function<void(IndexExpr)>& body) {
  if (extent.is(1)) return body(0);
  tiles.loop(exec, name, extent, body);
}

tile::Scalar open_carry(TileBuilder& tiles, Exec exec, std::string_view name, Dim extent,
                        tile::Scalar initial, Opcode combine, const TileBuilder::Step& step) {
  if (extent.is(1)) return step(0, initial);
  return tiles.carry(exec, name, extent, initial, combine, step);
}

}  // namespace hone
