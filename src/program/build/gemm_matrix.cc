#include "program/build/gemm_builder.h"

#include <algorithm>

#include "program/build/split.h"

namespace hone {

void GemmBuilder::set_up_matrix() {
  matrix_ = matrix_shape(body_, contraction_, space_, schedule_).value();
  if (matrix_->numbers.parts > 1) return;
  // Words of one operand are those of the other, so both lie in memory or neither does.
  const WordShape words = {.each = matrix_->numbers.each(), .inner = matrix_->inner};
  std::array<std::optional<WordSource>, 2> sources;
  for (size_t side = 0; side < 2; ++side)
    sources[side] = word_source(body_, contraction_, space_, words, side);
  if (!sources[0] || !sources[1]) return;
  sources_ = std::move(sources);
  words_ = words;
}

void GemmBuilder::set_up_matrix_panels(size_t side) {
  const BlockShape shape = block_shape(schedule_, space_, contraction_.sides[side]);
  const DType dtype =
      graph_.type(operand_value(side)).dtype() == DType::i8 ? DType::i32 : DType::u32;
  const int64_t parts = matrix_->numbers.parts, words = MatrixShape::kWords;
  if (side == matrix_->row_side)
    scratch(side, dtype, {shape.tiles, parts, matrix_->steps, matrix_->rows, words});
  else
    scratch(side, dtype, {shape.tiles, parts, matrix_->steps * words, matrix_->columns});
}

void GemmBuilder::matrix_block() {
  if (blocks_reduction_) clear_sums();
  reduction_blocks(0, false);
  // Sums are in memory: registers have nothing in common, and a loop is less code.
  const ValueId value = graph_.result(space_.anchor);
  tiles(schedule_.order.size(), [&] {
    tile_points(Exec::loop, 0, [&] {
      const Scalar sum = tiles_.load(*sums_, sums_index());
      points_.bind(value, sum);
      points_.store_outputs(point(), guards());
    });
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
  const size_t row = matrix_->row_side;
  tiles_.product({.sums = *sums_,
                  .lhs = operands_[row].buffer,
                  .rhs = operands_[1 - row].buffer,
                  .sums_block = sums_index()[0],
                  .lhs_block = tile_and_point(contraction_.sides[row])[0],
                  .rhs_block = tile_and_point(contraction_.sides[1 - row])[0],
                  .is_first = !blocks_reduction_});
}

void GemmBuilder::pack_matrix(size_t side) {
  const std::optional<int> across = points_side_by_side(side);
  const int64_t words = MatrixShape::kWords;
  const auto steps = [&](const std::function<void(const IndexExpr&)>& body) {
    tiles_.loop(Exec::loop, "step", matrix_->inner_steps, body);
  };
  if (!across)
    return pack_matrix_points(side, 0, [&] {
      steps([&](const IndexExpr& step) {
        tiles_.loop(Exec::lanes, "word", words,
                    [&](const IndexExpr& word) { pack_matrix_word(side, step, word); });
      });
    });
  const int64_t vectors = matrix_->points(side) / words;
  Place& at = place(*across);
  steps([&](const IndexExpr& step) {
    tiles_.loop(Exec::loop, "word", words, [&](const IndexExpr& word) {
      open_loop(tiles_, Exec::loop, "vector", vectors, [&](const IndexExpr& vector) {
        tiles_.loop(Exec::lanes, "point", words, [&](const IndexExpr& lane) {
          at.u = at.tile.lanes == words ? vector : vector * words + lane;
          at.lane = at.tile.lanes == words ? lane : IndexExpr(0);
          pack_matrix_word(side, step, word);
        });
      });
    });
  });
}

std::optional<int> GemmBuilder::points_side_by_side(size_t side) const {
  std::optional<int> along;
  for (int dim = 0; dim < space_.parallel; ++dim) {
    if (!contraction_.sides[side][static_cast<size_t>(dim)] || register_tile(schedule_, dim) == 1)
      continue;
    if (along) return std::nullopt;
    along = dim;
  }
  if (!along || matrix_->points(side) % MatrixShape::kWords != 0) return std::nullopt;
  const bool are_next = words_ ? words_are_next(side, *along) : operands_[side].lanes == along;
  return are_next ? along : std::nullopt;
}

bool GemmBuilder::words_are_next(size_t side, int dim) const {
  const WordSource& source = *sources_[side];
  const auto input = std::ranges::find(graph_.inputs(), source.parameter) - graph_.inputs().begin();
  const Type stored =
      stored_type(body_.inputs[static_cast<size_t>(input)], graph_.type(source.parameter));
  int64_t apart = 1;  // numbers
  for (size_t d = source.index.size(); d-- > 0;) {
    if (source.index[d].mentions(dim))
      return apart == words_->each && source.index[d].coefficient(dim).value_or(1) == 1;
    apart *= stored.dim(static_cast<int>(d)).value();
  }
  return false;
}

void GemmBuilder::pack_matrix_points(size_t side, int dim, const std::function<void()>& body) {
  if (dim == space_.parallel) return body();
  Place& at = place(dim);
  if (!contraction_.sides[side][static_cast<size_t>(dim)])
    return pack_matrix_points(side, dim + 1, body);
  open_loop(tiles_, Exec::loop, name(dim), at.tile.unroll, [&](const IndexExpr& u) {
    at.u = u;
    open_loop(tiles_, Exec::loop, name(dim), at.tile.lanes, [&](const IndexExpr& lane) {
      at.lane = lane;
      pack_matrix_points(side, dim + 1, body);
    });
  });
}

void GemmBuilder::pack_matrix_word(size_t side, const IndexExpr& step, const IndexExpr& word) {
  const std::vector<Scalar> parts = matrix_word(side, step, word);
  const int64_t words = MatrixShape::kWords;
  IndexExpr outer = 0;
  for (int dim : reduction_)
    if (dim != matrix_->inner)
      outer = outer * cache_block(schedule_, space_, dim) + place(dim).trip;
  const IndexExpr at = outer * matrix_->inner_steps + step;
  const Indices tile = tile_and_point(contraction_.sides[side]);
  for (size_t p = 0; p < parts.size(); ++p) {
    const IndexExpr part = static_cast<int64_t>(p);
    if (side == matrix_->row_side)
      tiles_.store(operands_[side].buffer, {tile[0], part, at, tile[1], word}, parts[p]);
    else
      tiles_.store(operands_[side].buffer, {tile[0], part, at * words + word, tile[1]}, parts[p]);
  }
}

// Where words do not lie in memory, their numbers are neighbours of those of the next words: so
// vectors of them are.
std::vector<tile::Scalar> GemmBuilder::matrix_word(size_t side, const IndexExpr& step,
                                                   const IndexExpr& word) {
  Place& inner = place(matrix_->inner);
  const int64_t end = inner.block.unroll, each = matrix_->numbers.each();
  const bool has_end = end < matrix_->inner_steps * matrix_->step();
  const bool is_signed = graph_.type(operand_value(side)).dtype() == DType::i8;
  const auto as_stored = [&](Scalar bits) {
    return is_signed ? tiles_.compute(Opcode::bitcast, {bits}, {{"dtype", DType::i32}}) : bits;
  };
  if (words_) {
    word_ = step * MatrixShape::kWords + word;
    inner.trip = word_ * each;
    Guards gaps;
    if (has_end) gaps.push_back({word_, 0, end / each});
    return {as_stored(word_in_memory(side, std::move(gaps)))};
  }
  std::vector<Scalar> numbers;
  for (int64_t i = 0; i < each; ++i) {
    inner.trip = step * matrix_->step() + word + i * MatrixShape::kWords;
    Guards gaps;
    if (has_end) gaps.push_back({inner.trip, 0, end});
    numbers.push_back(packed_number(side, std::move(gaps)));
  }
  if (matrix_->numbers.are_quads) return {as_stored(joined(numbers))};
  return split_pair(tiles_, numbers[0], numbers[1], matrix_->numbers);
}

}  // namespace hone
