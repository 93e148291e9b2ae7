#include "program/build/tile_parts.h"

#include <utility>

#include "base/planted.h"

namespace hone {

namespace {

void add_parts(int64_t first, int64_t end, int64_t unroll, int64_t lanes,
               std::vector<TilePart>& parts) {
  const int64_t tile = unroll * lanes, whole = (end - first) / tile, rest = (end - first) % tile;
  if (whole > 0 || rest == 0)
    parts.push_back({.trips = HONE_PLANT(whole_tiles, whole, whole > 1 ? whole - 1 : whole),
                     .first = first,
                     .unroll = unroll,
                     .lanes = lanes});
  if (rest > 0)
    parts.push_back({.trips = 1,
                     .first = first + whole * tile,
                     .unroll = (rest + lanes - 1) / lanes,
                     .lanes = lanes,
                     .has_gaps = rest % lanes != 0});
}

}  // namespace

std::vector<TilePart> tile_parts(Dim extent, int64_t unroll, int64_t lanes,
                                 std::span<const int64_t> cuts) {
  const int64_t tile = unroll * lanes;
  if (tile == 1 && cuts.empty()) return {{.trips = extent}};
  if (!extent.is_static())
    return {{.trips = ceildiv(extent, tile), .unroll = unroll, .lanes = lanes, .has_gaps = true}};
  std::vector<TilePart> parts;
  int64_t first = 0;
  for (int64_t cut : cuts) add_parts(std::exchange(first, cut), cut, unroll, lanes, parts);
  add_parts(first, extent.value(), unroll, lanes, parts);
  return parts;
}

Dim tiles_before_rest(const Dim& extent, int64_t tile) {
  return tile == 1 ? extent : 2 * floordiv(extent, 2 * tile);
}

std::vector<TilePart> open_tile_parts(const Dim& extent, int64_t tile) {
  constexpr int64_t kSmall = 4;
  std::vector<TilePart> parts;
  Dim first = 0, left = extent;
  // They fit exactly, but not every proof sees it.
  const auto add = [&](int64_t size, const Dim& trips, bool is_rest) {
    parts.push_back(
        {.trips = trips, .first = first, .unroll = size, .has_gaps = true, .is_rest = is_rest});
    first = HONE_PLANT(open_rest, first + trips * size, Dim(0));
    left = left - trips * size;
  };
  add(tile, tiles_before_rest(extent, tile), false);
  if (tile == 1) return parts;
  add(tile, floordiv(left, tile), true);
  if (tile > kSmall) add(kSmall, floordiv(left, kSmall), true);
  add(1, left, true);
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

void open_loops(TileBuilder& tiles, Exec exec, std::string_view name, std::span<const Dim> dims,
                const std::function<void(const TileBuilder::Indices&)>& body) {
  TileBuilder::Indices point;
  const std::function<void()> open = [&] {
    const size_t dim = point.size();
    if (dim == dims.size()) return body(point);
    tiles.loop(exec, fmt::format("{}{}", name, dim), dims[dim], [&](const IndexExpr& i) {
      point.push_back(i);
      open();
      point.pop_back();
    });
  };
  open();
}

void each_point(TileBuilder& tiles, std::span<const Dim> dims,
                const std::function<void(const TileBuilder::Indices&)>& body) {
  if (!dims.empty()) return open_loops(tiles, Exec::threads, "p", dims, body);
  tiles.loop(Exec::threads, "once", 1, [&](const IndexExpr&) { body({}); });
}

tile::Scalar open_carry(TileBuilder& tiles, Exec exec, std::string_view name, Dim extent,
                        tile::Scalar initial, Opcode combine, const TileBuilder::Step& step,
                        std::optional<tile::Span> span) {
  if (extent.is(1)) return step(0, initial);
  return tiles.carry(exec, name, extent, initial, combine, step, std::move(span));
}

}  // namespace hone
