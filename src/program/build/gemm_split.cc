#include "program/build/gemm_builder.h"

#include "program/build/split.h"

namespace hone {

void GemmBuilder::split_block() {
  clear_sums();
  reduction_blocks(0, false);
  all_points([&] {
    points_.bind(graph_.result(space_.anchor), tiles_.load(*sums_, sums_index()));
    points_.store_outputs(point(), guards());
  });
}

void GemmBuilder::clear_sums() {
  const BlockShape shape = block_shape(schedule_, space_, all_results());
  const Scalar zero = points_.zero(wide_);
  constexpr int64_t kLanes = 16;
  open_loop(tiles_, Exec::loop, "t", shape.tiles, [&](const IndexExpr& t) {
    tiles_.loop(Exec::loop, "v", shape.points / kLanes, [&](const IndexExpr& v) {
      tiles_.loop(Exec::lanes, "z", kLanes, [&](const IndexExpr& lane) {
        tiles_.store(*sums_, {t, v * kLanes + lane}, zero);
      });
    });
  });
}

void GemmBuilder::multiply_tile() {
  const size_t row = split_->row_side;
  tiles_.product({.sums = *sums_,
                  .lhs = operands_[row].buffer,
                  .rhs = operands_[1 - row].buffer,
                  .sums_block = sums_index()[0],
                  .lhs_block = tile_and_point(contraction_.sides[row])[0],
                  .rhs_block = tile_and_point(contraction_.sides[1 - row])[0]});
}

void GemmBuilder::pack_pairs(size_t side) {
  const bool is_row = side == split_->row_side;
  const int dim = is_row ? split_->row : split_->column;
  const bool by_points = operands_[side].lanes == dim;
  const int64_t points = split_->points(side), words = SplitShape::kWords;
  const auto at = [&](const IndexExpr& step, const IndexExpr& word, const IndexExpr& point) {
    const int64_t lanes = place(dim).tile.lanes;
    place(dim).u = lanes == 1 ? point : floordiv(point, lanes);
    place(dim).lane = lanes == 1 ? IndexExpr(0) : mod(point, lanes);
    pack_pair(side, step, word, point);
  };
  tiles_.loop(Exec::loop, "step", split_->inner_steps, [&](const IndexExpr& step) {
    if (by_points) {
      tiles_.loop(Exec::loop, "word", words, [&](const IndexExpr& word) {
        open_loop(tiles_, Exec::loop, "vector", points / 16, [&](const IndexExpr& vector) {
          tiles_.loop(Exec::lanes, "point", 16,
                      [&](const IndexExpr& lane) { at(step, word, vector * 16 + lane); });
        });
      });
    } else {
      tiles_.loop(Exec::loop, "point", points, [&](const IndexExpr& point) {
        tiles_.loop(Exec::lanes, "word", words,
                    [&](const IndexExpr& word) { at(step, word, point); });
      });
    }
  });
}

void GemmBuilder::pack_pair(size_t side, const IndexExpr& step, const IndexExpr& word,
                            const IndexExpr& point) {
  Place& inner = place(split_->inner);
  const int64_t end = inner.block.unroll;
  std::array<Scalar, 2> pair;
  for (int64_t half = 0; half < 2; ++half) {
    inner.trip = step * SplitShape::kStep + word * 2 + IndexExpr(half);
    Guards gaps;
    if (end < split_->inner_steps * SplitShape::kStep) gaps.push_back({inner.trip, 0, end});
    pair[static_cast<size_t>(half)] = packed_number(side, std::move(gaps));
  }
  IndexExpr outer = 0;
  for (int dim : reduction_)
    if (dim != split_->inner) outer = outer * cache_block(schedule_, space_, dim) + place(dim).trip;
  const IndexExpr at = outer * split_->inner_steps + step;
  const std::vector<Scalar> parts = split_pair(tiles_, pair[0], pair[1], SplitShape::kParts);
  const IndexExpr tile = tile_and_point(contraction_.sides[side])[0];
  for (size_t p = 0; p < parts.size(); ++p) {
    const IndexExpr part = static_cast<int64_t>(p);
    if (side == split_->row_side)
      tiles_.store(operands_[side].buffer, {tile, part, at, point, word}, parts[p]);
    else
      tiles_.store(operands_[side].buffer, {tile, part, at * SplitShape::kWords + word, point},
                   parts[p]);
  }
}

}  // namespace hone
