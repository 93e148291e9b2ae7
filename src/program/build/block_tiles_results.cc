#include <algorithm>

#include "program/build/block_tiles_builder.h"
#include "program/tiles/bounds.h"

// The sums of a tile become results, or parts that a second phase adds.

namespace hone {

void BlockTilesBuilder::results() {
  threads([&](const IndexExpr& thread) {
    PointBuilder points(body_, tiles_, place_);
    points.pin(space_.anchor);
    each_sum(thread, [&](const Indices& sum, const std::array<IndexExpr, 2>& lines) {
      Guards guards;
      const Indices point = point_of(lines, guards);
      if (most_parts_ > 1) {
        store_part(sum, lines, point, guards);
        if (!shares_) return;
        guards.push_back({more_parts_, 0, 1});
      }
      points.bind(graph_.result(space_.anchor), tiles_.load(sums_, sum));
      points.store_outputs(point, guards);
    });
  });
}

// The point of the results at these lines of the tile; `guards` get those that tell whether it is
// there.
BlockTilesBuilder::Indices BlockTilesBuilder::point_of(const std::array<IndexExpr, 2>& lines,
                                                       Guards& guards) const {
  Indices point = others_;
  for (size_t side = 0; side < 2; ++side) {
    // As simple as the index will be, so that the guard is seen to bound it.
    const IndexExpr at = TileBounds(tiles_.program()).simplified(first_[side] + lines[side]);
    spread(at, product_.sides[side], point);
    if (product_.lines[side] % tile_.lines[side] != 0)
      guards.push_back({at, 0, product_.lines[side]});
  }
  return point;
}

void BlockTilesBuilder::store_part(const Indices& sum, const std::array<IndexExpr, 2>& lines,
                                   const Indices& point, Guards guards) {
  if (!shares_)
    return tiles_.store(parts_, place_of_part(part_, point), tiles_.load(sums_, sum), guards);
  // As simple as the index will be, so that the guard is seen to bound it.
  const IndexExpr which = TileBounds(tiles_.program()).simplified(is_later(part_));
  guards.push_back({more_parts_, 1, most_parts_});
  guards.push_back({which, 0, 2});
  tiles_.store(parts_, place_in_block(block_, which, lines), tiles_.load(sums_, sum), guards);
}

Type BlockTilesBuilder::type_of_parts() const {
  const size_t next = side_in_memory();
  if (shares_)
    return Type::get(wide_, {shares_->blocks, 2, tile_.lines[1 - next], tile_.lines[next]});
  Dims dims = {most_parts_};
  for (int dim = 0; dim < space_.parallel; ++dim) dims.push_back(extent(dim));
  return Type::get(wide_, dims);
}

BlockTilesBuilder::Indices BlockTilesBuilder::place_of_part(const IndexExpr& part,
                                                            const Indices& point) {
  Indices place = {part};
  place.insert(place.end(), point.begin(), point.end());
  return place;
}

// A thread adds the parts of a point of the results.
void BlockTilesBuilder::add_parts(int dim) {
  if (dim == space_.parallel && dim > 0) return add_parts_here();
  const std::string_view name = dim == space_.parallel
                                    ? "once"
                                    : std::string_view(space_.dims[static_cast<size_t>(dim)].name);
  const Dim points = dim == space_.parallel ? Dim(1) : extent(dim);
  tiles_.loop(Exec::threads, name, points, [&](const IndexExpr& i) {
    if (dim == space_.parallel) return add_parts_here();
    others_[static_cast<size_t>(dim)] = i;
    add_parts(dim + 1);
  });
}

void BlockTilesBuilder::add_parts_here() {
  add_parts_of(others_, {},
               [&](int64_t part) { return tiles_.load(parts_, place_of_part(part, others_)); });
}

void BlockTilesBuilder::add_parts_of(const Indices& point, const Guards& guards,
                                     const std::function<Scalar(int64_t part)>& part_of) {
  Scalar sum = part_of(0);
  for (int64_t part = 1; part < most_parts_; ++part)
    sum = tiles_.compute(Opcode::add, {sum, part_of(part)});
  PointBuilder points(body_, tiles_, place_);
  points.pin(space_.anchor);
  points.bind(graph_.result(space_.anchor), sum);
  points.store_outputs(point, guards);
}

// A block has two of them at most. One is the first of the tile that goes on in the next block.
// The other is a later one of the tile that came from the block before.
IndexExpr BlockTilesBuilder::is_later(const IndexExpr& part) const {
  return floordiv(part + IndexExpr(most_parts_ - 2), most_parts_ - 1);
}

BlockTilesBuilder::Indices BlockTilesBuilder::place_in_block(
    const IndexExpr& block, const IndexExpr& which, const std::array<IndexExpr, 2>& lines) const {
  const size_t next = side_in_memory();
  return {block, which, lines[1 - next], lines[next]};
}

// A thread adds the parts of a point of a tile. Each block but the last may be the first of one.
void BlockTilesBuilder::add_shared_parts() {
  const size_t next = side_in_memory();
  tiles_.loop(Exec::threads, "first", shares_->blocks - 1, [&](const IndexExpr& first) {
    tiles_.loop(Exec::threads, "i", tile_.lines[1 - next], [&](const IndexExpr& i) {
      tiles_.loop(Exec::threads, "j", tile_.lines[next], [&](const IndexExpr& j) {
        add_shared_parts(first, next == 1 ? std::array{i, j} : std::array{j, i});
      });
    });
  });
}

// A tile of one block has no parts, and is stored.
void BlockTilesBuilder::add_shared_parts(const IndexExpr& first,
                                         const std::array<IndexExpr, 2>& lines) {
  const IndexExpr last_step = (first + IndexExpr(1)) * shares_->share + IndexExpr(-1),
                  tile = floordiv(last_step, shares_->steps), more = shares_->more_parts(tile);
  move_to(tile);
  Guards guards = {{more, 1, most_parts_}, {first - shares_->first_block(tile), 0, 1}};
  const Indices point = point_of(lines, guards);
  add_parts_of(point, guards, [&](int64_t part) {
    const IndexExpr block = first + IndexExpr(part);
    Guards is_there = guards;  // nobody wrote parts of other points
    is_there.front() = {more, std::max<int64_t>(part, 1), most_parts_};
    if (part > 1) is_there.push_back({block, 0, shares_->blocks});
    return tiles_.load(parts_, place_in_block(block, part == 0 ? 0 : 1, lines), is_there,
                       tiles_.zero(wide_));
  });
}

}  // namespace hone
