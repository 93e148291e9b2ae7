#include "program/build/warp_products.h"

#include "program/build/tile_parts.h"
#include "target/gpu.h"

namespace hone {

static_assert(WarpTiles::kLines == std::array{tile::kProductRows, tile::kProductColumns});
static_assert(WarpTiles::kDepth == 2 * tile::kProductWords);

WarpProducts::WarpProducts(TileBuilder& tiles, const WarpTiles& shape)
    : tiles_(tiles), shape_(shape) {
  const auto [rows, columns] = shape_.own;
  sums_ = tiles_.buffer("sums", Type::get(DType::f32, {rows, columns, 4}), BufferRole::own);
  factors_ = {tiles_.buffer("rows", Type::get(DType::u32, {rows, 4}), BufferRole::own),
              tiles_.buffer("columns", Type::get(DType::u32, {columns, 2}), BufferRole::own)};
}

int64_t WarpProducts::threads() const { return shape_.across[0] * shape_.across[1] * kWarpLanes; }

// The first lines of the matrices of the thread's warp.
std::array<IndexExpr, 2> WarpProducts::first_lines(const IndexExpr& thread) const {
  const IndexExpr warp = floordiv(thread, kWarpLanes);
  const auto lines = [&](size_t side) { return shape_.own[side] * WarpTiles::kLines[side]; };
  return {floordiv(warp, shape_.across[1]) * lines(0), mod(warp, shape_.across[1]) * lines(1)};
}

void WarpProducts::each_sum(const IndexExpr& thread, const EachSum& body) {
  const std::array<IndexExpr, 2> first = first_lines(thread);
  const IndexExpr lane = mod(thread, kWarpLanes);
  open_loop(tiles_, Exec::unroll, "i", shape_.own[0], [&](const IndexExpr& i) {
    open_loop(tiles_, Exec::unroll, "j", shape_.own[1], [&](const IndexExpr& j) {
      tiles_.loop(Exec::unroll, "h", 2, [&](const IndexExpr& h) {
        tiles_.loop(Exec::unroll, "e", 2, [&](const IndexExpr& e) {
          body({i, j, h * 2 + e}, first[0] + i * tile::kProductRows + floordiv(lane, 4) + h * 8,
               first[1] + j * tile::kProductColumns + mod(lane, 4) * 2 + e);
        });
      });
    });
  });
}

void WarpProducts::clear() {
  tiles_.loop(Exec::threads, "t", threads(), [&](const IndexExpr& thread) {
    const Scalar zero = tiles_.zero(DType::f32);
    each_sum(thread,
             [&](const Indices& sum, const auto&, const auto&) { tiles_.store(sums_, sum, zero); });
  });
}

void WarpProducts::multiply(int64_t points, const std::function<NumberOf()>& numbers) {
  const int64_t steps = (points + WarpTiles::kDepth - 1) / WarpTiles::kDepth;
  open_loop(tiles_, Exec::loop, "q", steps, [&](const IndexExpr& step) {
    tiles_.loop(Exec::threads, "t", threads(), [&](const IndexExpr& thread) {
      const NumberOf number = numbers();
      for (size_t side = 0; side < 2; ++side) load_factors(side, thread, step, number);
    });
    for (int64_t i = 0; i < shape_.own[0]; ++i)
      for (int64_t j = 0; j < shape_.own[1]; ++j)
        tiles_.product({.sums = sums_,
                        .lhs = factors_[0],
                        .rhs = factors_[1],
                        .sums_index = {i, j},
                        .lhs_index = {i},
                        .rhs_index = {j},
                        .numbers = shape_.numbers});
  });
}

// The words of the thread, as WarpProduct has them.
void WarpProducts::load_factors(size_t side, const IndexExpr& thread, const IndexExpr& step,
                                const NumberOf& number) {
  const IndexExpr lane = mod(thread, kWarpLanes), first = first_lines(thread)[side];
  const int64_t halves = side == 0 ? 2 : 1;
  open_loop(tiles_, Exec::unroll, "i", shape_.own[side], [&](const IndexExpr& i) {
    tiles_.loop(Exec::unroll, "q", 2, [&](const IndexExpr& q) {
      open_loop(tiles_, Exec::unroll, "h", halves, [&](const IndexExpr& h) {
        const IndexExpr line = first + i * WarpTiles::kLines[side] + floordiv(lane, 4) + h * 8,
                        depth = step * WarpTiles::kDepth + (mod(lane, 4) + q * 4) * 2;
        tiles_.store(factors_[side], {i, h + q * halves},
                     word(number(side, line, depth), number(side, line, depth + IndexExpr(1))));
      });
    });
  });
}

// A bf16 is the upper half of an f32.
tile::Scalar WarpProducts::word(Scalar low, Scalar high) {
  const bool is_half = shape_.numbers == DType::bf16;
  const auto bits_of = [&](Scalar number) {
    const Scalar stored = tiles_.cast(number, shape_.numbers);
    if (is_half)
      return tiles_.compute(Opcode::bitcast, {tiles_.cast(stored, DType::f32)},
                            {{"dtype", DType::u32}});
    return tiles_.cast(tiles_.compute(Opcode::bitcast, {stored}, {{"dtype", DType::u16}}),
                       DType::u32);
  };
  const auto with = [&](Opcode op, Scalar word, int64_t by) {
    return tiles_.compute(op, {word, tiles_.integer(DType::u32, by)});
  };
  const Scalar lower = is_half ? with(Opcode::shift_right, bits_of(low), 16) : bits_of(low);
  const Scalar upper = is_half ? with(Opcode::and_, bits_of(high), 0xffff0000)
                               : with(Opcode::mul, bits_of(high), 1 << 16);
  return tiles_.compute(Opcode::or_, {lower, upper});
}

}  // namespace hone
