#include <algorithm>

#include "program/build/block_tiles_builder.h"
#include "program/build/split.h"
#include "program/build/tile_parts.h"
#include "program/tiles/bounds.h"

// How a block brings the operands of a tile to its memory.

namespace hone {

bool BlockTilesBuilder::may_copy(size_t side) const {
  return tile_.stages > 1 && operands_[side].piece * bits(tile_.stored) >= 32;
}

// For each thread and side, the last fill first: 1 if it stored parts of a wild number.
void BlockTilesBuilder::forget_wild() {
  threads([&](const IndexExpr&) {
    for (tile::BufferId wild : wild_)
      for (int64_t fill = 0; fill < fills_in_hand(); ++fill)
        tiles_.store(wild, {fill}, tiles_.zero(DType::u32));
  });
}

void BlockTilesBuilder::begin_wild(size_t side) {
  threads([&](const IndexExpr&) {
    for (int64_t fill = fills_in_hand() - 1; fill > 0; --fill)
      tiles_.store(wild_[side], {fill}, tiles_.load(wild_[side], {fill - 1}));
    tiles_.store(wild_[side], {0}, tiles_.zero(DType::u32));
  });
}

// For the block: 1 if a thread stored parts of a wild number in the first fill that is in hand.
IndexExpr BlockTilesBuilder::vote_on_wild() {
  const Indices first = {fills_in_hand() - 1};
  threads([&](const IndexExpr&) {
    tiles_.store(
        wild_[0], first,
        tiles_.compute(Opcode::or_, {tiles_.load(wild_[0], first), tiles_.load(wild_[1], first)}));
  });
  return tiles_.vote("wild", wild_[0], first);
}

// The step is one of the block's, the turn that of its stage. Boxes come if all of `left` are
// above 0: they are waited for then.
void BlockTilesBuilder::fill(const IndexExpr& step, const IndexExpr& turn, const Indices& left) {
  std::vector<BoxStages::Box> boxes;
  for (size_t side = 0; side < 2; ++side) {
    if (operands_[side].box_axis)
      add_boxes(side, first_step_ + step, boxes);
    else
      fill(side, first_step_ + step, stage_of(turn));
  }
  if (boxes_) boxes_->start(turn, boxes, left);
  if (tile_.stages > 1 && threads_copy()) tiles_.group();
}

// The tile's part of an operand. A box may end outside of that: there are zeros. One across has
// as many lines as points of the reduction.
void BlockTilesBuilder::add_boxes(size_t side, const IndexExpr& step,
                                  std::vector<BoxStages::Box>& boxes) const {
  const BlockOperand& operand = operands_[side];
  const int64_t rows = operand.is_along ? tile_.lines[side] : tile_.depth;
  for (int64_t line = 0; line < tile_.lines[side]; line += rows) {
    Indices point = others_;
    spread(first_[side] + IndexExpr(line), product_.sides[side], point);
    point.resize(space_.dims.size(), 0);
    point[static_cast<size_t>(product_.depth[0])] = step * tile_.depth;
    const TileBounds bounds(tiles_.program());
    Indices first;
    for (const IndexExpr& read : operand.reads)
      first.push_back(bounds.simplified(read.substitute(point)));
    boxes.push_back({.to = memory_[side],
                     .to_row = line,
                     .from = place_.inputs[*operand.input].buffer,
                     .first = std::move(first),
                     .axis = *operand.box_axis,
                     .rows = rows});
  }
}

// Threads take pieces that are neighbours in the memory of the caller.
void BlockTilesBuilder::fill(size_t side, const IndexExpr& step, const IndexExpr& stage) {
  const int64_t pieces = tile_.lines[side] * tile_.depth / operands_[side].piece;
  const int64_t threads = std::min(tile_.threads(), pieces), each = pieces / threads;
  if (has_parts()) begin_wild(side);
  tiles_.loop(Exec::threads, "t", threads, [&](const IndexExpr& thread) {
    PointBuilder points(body_, tiles_, place_);
    const Exec exec = each <= kUnrolledCopies ? Exec::unroll : Exec::loop;
    const auto fill_next = [&](const IndexExpr& u, std::optional<Scalar>& wild) {
      const IndexExpr at = u * threads + thread;
      const int64_t next =
          (operands_[side].is_depth_next ? tile_.depth : tile_.lines[side]) / operands_[side].piece;
      IndexExpr line = floordiv(at, next), depth = mod(at, next) * operands_[side].piece;
      if (!operands_[side].is_depth_next) std::swap(line, depth);
      fill_piece(side, line, depth, step, stage, points, wild);
    };
    std::optional<Scalar> none;
    if (!has_parts())
      return open_loop(tiles_, exec, "u", each, [&](IndexExpr u) { fill_next(u, none); });
    const Scalar before = tiles_.load(wild_[side], {0});
    const Scalar after = open_carry(tiles_, exec, "u", each, before, Opcode::or_,
                                    [&](const IndexExpr& u, Scalar so_far) {
                                      std::optional<Scalar> wild = so_far;
                                      fill_next(u, wild);
                                      return *wild;
                                    });
    tiles_.store(wild_[side], {0}, after);
  });
}

// `wild`, if numbers have parts: whether one so far is.
void BlockTilesBuilder::fill_piece(size_t side, const IndexExpr& line, const IndexExpr& depth,
                                   const IndexExpr& step, const IndexExpr& stage,
                                   PointBuilder& points, std::optional<Scalar>& wild) {
  Guards gaps;
  const Indices iters = factor_index(side, line, step * tile_.depth + depth, gaps);
  const Indices to = place_in_memory(side, stage, line, depth, operands_[side].piece);
  if (may_copy(side)) {
    std::optional<PointBuilder::Element> from =
        points.element_of_factor(space_.anchor, side, iters, gaps);
    const bool is_stored_so =
        from && tiles_.program().buffers[from->buffer].type.dtype() == tile_.stored;
    if (is_stored_so)
      return tiles_.copy({memory_[side], to, from->buffer, std::move(from->index),
                          operands_[side].piece, std::move(from->guards)});
  }
  for (int64_t i = 0; i < operands_[side].piece; ++i) {
    const IndexExpr at_line = operands_[side].is_along ? line : line + IndexExpr(i),
                    at_depth = operands_[side].is_along ? depth + IndexExpr(i) : depth;
    Guards own;
    const Indices at = factor_index(side, at_line, step * tile_.depth + at_depth, own);
    const Scalar number = points.factor(space_.anchor, side, at, {}, own);
    store_factor(side, place_in_memory(side, stage, at_line, at_depth, 1), number);
    if (wild) wild = tiles_.compute(Opcode::or_, {*wild, is_wild(tiles_, number)});
  }
}

// Swizzled memory swaps pieces itself. Lines across are in parts of as many as a row has.
BlockTilesBuilder::Indices BlockTilesBuilder::place_in_memory(size_t side, const IndexExpr& stage,
                                                              const IndexExpr& line,
                                                              const IndexExpr& depth,
                                                              int64_t whole) const {
  if (!tile_.by_warps) return {stage, depth, line};
  if (!tile_.by_groups) return {stage, line, swizzled(tile_, line, depth, whole)};
  if (operands_[side].is_along) return {stage, line, depth};
  const int64_t in_row = tile_.depth;
  return {stage, floordiv(line, in_row) * in_row + depth,
          mod(floordiv(line, whole), in_row / whole) * whole + mod(line, whole)};
}

void BlockTilesBuilder::store_factor(size_t side, Indices place, Scalar number) {
  if (!has_parts()) return tiles_.store(memory_[side], place, tiles_.cast(number, tile_.stored));
  for (Scalar part : split_tame(tiles_, number, tile_.numbers)) {
    tiles_.store(memory_[side], place, part);
    place[1] = place[1] + IndexExpr(tile_.lines[side]);
  }
}

// A point of the anchor's relation; `gaps` get the guards that tell whether it is there.
BlockTilesBuilder::Indices BlockTilesBuilder::factor_index(size_t side, const IndexExpr& line,
                                                           const IndexExpr& depth,
                                                           Guards& gaps) const {
  Indices point = others_;
  const IndexExpr at = first_[side] + line;
  spread(at, product_.sides[side], point);
  gaps.insert(gaps.end(), inside_.begin(), inside_.end());
  if (product_.lines[side] % tile_.lines[side] != 0) gaps.push_back({at, 0, product_.lines[side]});
  const int64_t steps = tile_.splits * steps_of_split(product_, tile_);
  if (tile_.stages > 1 || product_.points != steps * tile_.depth)
    gaps.push_back({depth, 0, product_.points});
  point.resize(space_.dims.size(), 0);
  spread(depth, product_.depth, point);
  Indices iters;
  for (const IndexExpr& expr : contraction_.index) iters.push_back(expr.substitute(point));
  for (int dim : product_.depth) iters.push_back(point[static_cast<size_t>(dim)]);
  return iters;
}

// The points of several dims that are counted as one.
void BlockTilesBuilder::spread(IndexExpr at, const std::vector<int>& dims, Indices& point) const {
  for (size_t i = dims.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(dims[i]);
    point[dim] = i == 0 ? at : mod(at, extent(dims[i]));
    at = floordiv(at, extent(dims[i]));
  }
}

}  // namespace hone
