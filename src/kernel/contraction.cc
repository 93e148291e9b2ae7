#include "kernel/contraction.h"

#include <algorithm>
#include <optional>

#include "ir/op_def.h"

namespace hone {

bool has_open_sizes(const KernelSpace& space) {
  return std::ranges::any_of(space.dims,
                             [](const IterDim& dim) { return !dim.extent.is_static(); });
}

// ---- Blocks -------------------------------------------------------------------------------------

int64_t tile_of(const std::vector<Tile>& tiles, int dim) {
  const auto tile = std::ranges::find(tiles, dim, &Tile::dim);
  return tile == tiles.end() ? 1 : tile->count;
}

int64_t register_tile(const Schedule& schedule, int dim) {
  return tile_of(schedule.unroll, dim) * tile_of(schedule.lanes, dim);
}

int64_t cache_block(const Schedule& schedule, const KernelSpace& space, int dim) {
  // An open size has no block of its own, but a bound.
  const int64_t extent = space.dims[static_cast<size_t>(dim)].extent.range().high;
  const std::vector<Tile>& blocks = schedule.get<GemmFields>().block;
  const auto block = std::ranges::find(blocks, dim, &Tile::dim);
  const bool is_named = block != blocks.end();
  if (dim >= space.parallel) return is_named ? std::min(block->count, extent) : extent;
  const int64_t tile = register_tile(schedule, dim);
  const int64_t most = (extent + tile - 1) / tile * tile;
  return is_named ? std::min(block->count, most) : tile;
}

BlockShape block_shape(const Schedule& schedule, const KernelSpace& space,
                       const std::vector<bool>& dims) {
  BlockShape shape;
  for (int d = 0; d < space.parallel; ++d) {
    if (!dims[static_cast<size_t>(d)]) continue;
    const int64_t tile = register_tile(schedule, d);
    shape.tiles *= cache_block(schedule, space, d) / tile;
    shape.points *= tile;
  }
  return shape;
}

int64_t block_depth(const Schedule& schedule, const KernelSpace& space) {
  int64_t depth = 1;
  for (int d = space.parallel; d < static_cast<int>(space.dims.size()); ++d)
    depth *= cache_block(schedule, space, d);
  return depth;
}

namespace {

// For an index that goes `step` on with each `points` points of a dim, as the channels of a conv do
// from one group of its features to the next.
struct Jumps {
  int64_t points = 1, step = 0;
};

// True if an expression has no symbols.
struct NumbersAlone {
  bool number(const Dim& dim) const { return dim.is_static(); }
  bool iter(int /*i*/) const { return true; }
  bool add(bool a, bool b) const { return a && b; }
  bool multiply(bool a, const Dim& factor) const { return a && factor.is_static(); }
  bool floordiv(bool a, const Dim& divisor) const { return a && divisor.is_static(); }
  bool mod(bool a, const Dim& divisor) const { return a && divisor.is_static(); }
};

// Nothing: it depends on the dim in another way.
std::optional<Jumps> jumps_along(const IndexExpr& expr, const KernelSpace& space, int dim) {
  std::vector<IndexExpr> alone(space.dims.size(), 0), others;
  for (int d = 0; d < static_cast<int>(space.dims.size()); ++d)
    others.push_back(d == dim ? IndexExpr(0) : IndexExpr::iter(d));
  alone[static_cast<size_t>(dim)] = IndexExpr::iter(dim);
  const IndexExpr along =
      expr.substitute(alone) - expr.substitute(std::vector<IndexExpr>(space.dims.size(), 0));
  const Dim& all = space.dims[static_cast<size_t>(dim)].extent;
  if (NumbersAlone numbers; !all.is_static() || !along.compute(numbers)) return std::nullopt;
  if (expr - along != expr.substitute(others)) return std::nullopt;
  std::vector<int64_t> point(space.dims.size(), 0);
  int64_t& at = point[static_cast<size_t>(dim)];
  while (at < all.value() && along.at(point) == 0) ++at;
  if (at == 0) return std::nullopt;
  const Jumps jumps = {at, along.at(point)};
  if (along != floordiv(IndexExpr::iter(dim), jumps.points) * jumps.step) return std::nullopt;
  return jumps;
}

// How much further than the first point's index those of a block go: of whole parts between jumps,
// or of one of them.
std::optional<int64_t> reach(const IndexExpr& expr, const KernelSpace& space, int dim,
                             int64_t block) {
  if (block == 1) return 0;
  if (const std::optional<int64_t> step = expr.coefficient(dim)) {
    if (*step < 0) return std::nullopt;
    return *step * (block - 1);
  }
  const std::optional<Jumps> jumps = jumps_along(expr, space, dim);
  if (!jumps || jumps->step < 0) return std::nullopt;
  if (jumps->points % block == 0) return 0;
  if (block % jumps->points != 0) return std::nullopt;
  return jumps->step * (block / jumps->points - 1);
}

}  // namespace

Result<std::vector<int64_t>> window_of(const Contraction& contraction, const KernelSpace& space,
                                       const Schedule& schedule, size_t side) {
  if (contraction.has_holes[side])
    return unsupported("a packed window cannot come from an operand with holes");
  std::vector<int64_t> extents;
  for (const IndexExpr& expr : contraction.reads[side]) {
    int64_t extent = 1;
    for (int d = 0; d < static_cast<int>(space.dims.size()); ++d) {
      const std::optional<int64_t> further = reach(expr, space, d, cache_block(schedule, space, d));
      if (!further)
        return unsupported("a packed window cannot come from an operand that is read in jumps");
      extent += *further;
    }
    extents.push_back(extent);
  }
  return extents;
}

bool blocks_reduction(const Schedule& schedule, const KernelSpace& space) {
  return std::ranges::any_of(schedule.get<GemmFields>().block, [&](const Tile& block) {
    return block.dim >= space.parallel &&
           cache_block(schedule, space, block.dim) <
               space.dims[static_cast<size_t>(block.dim)].extent.value();
  });
}

}  // namespace hone
