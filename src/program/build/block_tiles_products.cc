#include <algorithm>

#include "program/build/block_tiles_builder.h"
#include "program/build/split.h"
#include "program/build/tile_parts.h"
#include "target/gpu.h"

// How the threads, warps and warpgroups of a block multiply what is in its memory.

namespace hone {

void BlockTilesBuilder::each_sum(const IndexExpr& thread, const EachSum& body) {
  if (tile_.by_warps) return each_sum_of_warp(thread, body);
  open_loop(tiles_, Exec::unroll, "i", tile_.own[0], [&](const IndexExpr& i) {
    open_loop(tiles_, Exec::unroll, "j", tile_.own[1], [&](const IndexExpr& j) {
      body({i, j}, {line_of(0, thread, i), line_of(1, thread, j)});
    });
  });
}

// Threads side by side have lines side by side: those of the side along which results lie so.
IndexExpr BlockTilesBuilder::line_of(size_t side, const IndexExpr& thread,
                                     const IndexExpr& own) const {
  const size_t next = side_in_memory();
  const IndexExpr at =
      side == next ? mod(thread, tile_.across(next)) : floordiv(thread, tile_.across(next));
  return own * tile_.across(side) + at;
}

size_t BlockTilesBuilder::side_in_memory() const {
  const std::vector<int>& rows = product_.sides[0];
  return !rows.empty() && rows.back() == space_.parallel - 1 ? 0 : 1;
}

void BlockTilesBuilder::each_sum_of_warp(const IndexExpr& thread, const EachSum& body) {
  const std::array<IndexExpr, 2> first = first_of_warp(thread);
  const IndexExpr lane = mod(thread, kWarpLanes);
  open_loop(tiles_, Exec::unroll, "i", tile_.own[0] / tile::kProductRows, [&](IndexExpr i) {
    open_loop(tiles_, Exec::unroll, "j", tile_.own[1] / tile::kProductColumns, [&](IndexExpr j) {
      tiles_.loop(Exec::unroll, "h", 2, [&](const IndexExpr& h) {
        tiles_.loop(Exec::unroll, "e", 2, [&](const IndexExpr& e) {
          body({i, j, h * 2 + e}, {first[0] + i * tile::kProductRows + floordiv(lane, 4) + h * 8,
                                   first[1] + j * tile::kProductColumns + mod(lane, 4) * 2 + e});
        });
      });
    });
  });
}

// The first lines of the warp's tile.
std::array<IndexExpr, 2> BlockTilesBuilder::first_of_warp(const IndexExpr& thread) const {
  const IndexExpr warp = floordiv(thread, kWarpLanes);
  return {floordiv(warp, tile_.across(1)) * tile_.own[0],
          mod(warp, tile_.across(1)) * tile_.own[1]};
}

void BlockTilesBuilder::clear_sums() {
  threads([&](const IndexExpr& thread) {
    const Scalar zero = tiles_.zero(wide_);
    each_sum(thread, [&](const Indices& sum, const auto&) { tiles_.store(sums_, sum, zero); });
  });
}

void BlockTilesBuilder::multiply(const IndexExpr& stage) {
  if (tile_.by_groups) return add_products(0, stage);
  if (tile_.by_warps) return multiply_by_warps(stage);
  threads([&](const IndexExpr& thread) {
    multiply_by_thread(thread, [&](size_t side, const IndexExpr& line, const IndexExpr& k) {
      return tiles_.load(memory_[side], {stage, k, line});
    });
  });
}

void BlockTilesBuilder::multiply_by_thread(const IndexExpr& thread, const FactorOf& factor) {
  each_sum(thread, [&](const Indices& sum, const std::array<IndexExpr, 2>& lines) {
    const Scalar before = tiles_.load(sums_, sum);
    const Scalar after = tiles_.carry(
        Exec::loop, "k", tile_.depth, before, Opcode::add, [&](const IndexExpr& k, Scalar so_far) {
          const Scalar a = factor(0, lines[0], k), b = factor(1, lines[1], k);
          if (is_real(wide_)) return tiles_.fma(a, b, so_far);
          return tiles_.compute(Opcode::add, {so_far, tiles_.compute(Opcode::mul, {a, b})});
        });
    tiles_.store(sums_, sum, after);
  });
}

// The vote is 1 if the step has wild numbers. Then threads take the numbers from where they came.
void BlockTilesBuilder::multiply_parts(const IndexExpr& stage, const IndexExpr& step,
                                       const IndexExpr& wild) {
  tiles_.loop(
      Exec::loop, "tame", 1, [&](const IndexExpr&) { multiply(stage); }, tile::Span{wild, 1});
  if (shares_) move_to(tile_at_hand_);
  const IndexExpr first = (first_step_ + step) * tile_.depth;
  tiles_.loop(
      Exec::loop, "once", 1,
      [&](const IndexExpr&) {
        threads([&](const IndexExpr& thread) {
          PointBuilder points(body_, tiles_, place_);
          multiply_by_thread(thread, [&](size_t side, const IndexExpr& line, const IndexExpr& k) {
            Guards gaps;
            const Indices at = factor_index(side, line, first + k, gaps);
            return points.factor(space_.anchor, side, at, {}, gaps);
          });
        });
      },
      tile::Span{0, wild});
}

// As many products at a time as one word of each line makes eight: factors to registers, then all
// warps multiply.
void BlockTilesBuilder::multiply_by_warps(const IndexExpr& stage) {
  const int64_t points = tile::kProductWords * tile_.numbers.each();
  open_loop(tiles_, Exec::loop, "q", tile_.depth / points, [&](const IndexExpr& q) {
    threads([&](const IndexExpr& thread) {
      const std::array<IndexExpr, 2> first = first_of_warp(thread);
      for (size_t side = 0; side < 2; ++side)
        for (int64_t part = 0; part < tile_.numbers.parts; ++part)
          load_factors(side, part, first[side], mod(thread, kWarpLanes), stage, q * points);
    });
    for (int64_t i = 0; i < tile_.own[0] / tile::kProductRows; ++i) add_products(i, stage);
  });
}

// Four matrices of 8 lines at a time, if there are as many. Two of rows below each other come
// before those of the next piece. For columns it is the other way round.
void BlockTilesBuilder::load_factors(size_t side, int64_t part, const IndexExpr& first,
                                     const IndexExpr& lane, const IndexExpr& stage,
                                     const IndexExpr& depth) {
  constexpr int64_t kLines = tile::kMatrixRows;
  const int64_t points = tile_.piece();
  const int64_t all = tile_.own[side] / kLines, lines = std::min<int64_t>(all, 2);
  const IndexExpr row = mod(lane, kLines), second = mod(floordiv(lane, kLines), 2),
                  third = floordiv(lane, 2 * kLines);
  const IndexExpr &below = side == 0 ? second : third, &further = side == 0 ? third : second;
  const int64_t of_each = side == 0 ? 1 : lines;  // places of factors, for what is loaded at once
  open_loop(tiles_, Exec::unroll, "i", all / lines, [&](const IndexExpr& i) {
    const IndexExpr line = first + i * (lines * kLines) + row +
                           (lines == 1 ? IndexExpr(0) : below * kLines) +
                           IndexExpr(part * tile_.lines[side]);
    tiles_.matrices(
        {.to = factors_[side],
         .to_index = {i * of_each + IndexExpr(part * (all / lines) * of_each)},
         .from = memory_[side],
         .from_index = {stage, line, swizzled(tile_, line, depth + further * points, points)},
         .count = 2 * lines});
  });
}

// For one matrix of rows, with all columns of the warp; or for the rows of warpgroups. Tensor
// cores cut sums off, so that long ones of them are too small. Therefore products of parts are
// summed there for one step alone, the small ones first; a plain addition, which rounds, adds
// them to the others. Factors were multiplied by kTamed.
void BlockTilesBuilder::add_products(int64_t i, const IndexExpr& stage) {
  if (has_parts())
    each_step_sum([&](const Indices& at) { tiles_.store(step_sums_, at, tiles_.zero(wide_)); });
  for (int64_t less = tile_.numbers.parts - 1; less >= 0; --less)
    for (int64_t part = 0; part <= less; ++part) {
      if (tile_.by_groups)
        add_product_of_groups(part, less - part, stage);
      else
        add_products_of_warps(i, part, less - part);
    }
  if (!has_parts()) return;
  each_step_sum([&](const Indices& at) {
    const Indices sum = {i, at[0], at[1]};
    const Scalar more = tiles_.load(step_sums_, at);
    const Scalar untamed = tiles_.real(DType::f32, 1 / (kTamed * kTamed));
    tiles_.store(sums_, sum, tiles_.fma(more, untamed, tiles_.load(sums_, sum)));
  });
}

void BlockTilesBuilder::add_products_of_warps(int64_t i, int64_t left, int64_t right) {
  const int64_t columns = tile_.own[1] / tile::kProductColumns;
  const int64_t rows = tile_.own[0] / tile::kProductRows;
  for (int64_t j = 0; j < columns; ++j)
    tiles_.product({.sums = has_parts() ? step_sums_ : sums_,
                    .lhs = factors_[0],
                    .rhs = factors_[1],
                    .sums_index = has_parts() ? Indices{j} : Indices{i, j},
                    .lhs_index = {left * rows + i},
                    .rhs_index = {right * columns + j},
                    .numbers = tile_.stored});
}

void BlockTilesBuilder::add_product_of_groups(int64_t left, int64_t right, const IndexExpr& stage) {
  tiles_.group_product({.sums = has_parts() ? step_sums_ : sums_,
                        .lhs = memory_[0],
                        .rhs = memory_[1],
                        .sums_index = has_parts() ? Indices{} : Indices{0},
                        .lhs_index = {stage, left * tile_.lines[0]},
                        .rhs_index = {stage, right * tile_.lines[1]},
                        .columns = tile_.lines[1],
                        .numbers = tile_.stored,
                        .lhs_across = !operands_[0].is_along,
                        .rhs_across = !operands_[1].is_along});
}

void BlockTilesBuilder::each_step_sum(const std::function<void(const Indices& at)>& body) {
  threads([&](const IndexExpr&) {
    open_loop(tiles_, Exec::unroll, "j", tile_.own[1] / tile::kProductColumns, [&](IndexExpr j) {
      tiles_.loop(Exec::unroll, "n", 4, [&](const IndexExpr& n) { body({j, n}); });
    });
  });
}

}  // namespace hone
