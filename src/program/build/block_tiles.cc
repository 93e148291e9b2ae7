#include "kernel/algorithms/block_tiles.h"

#include "program/build/algorithms.h"
#include "program/build/block_tiles_builder.h"
#include "program/build/tile_parts.h"

namespace hone {

BlockTilesBuilder::BlockTilesBuilder(const KernelBody& body, const Schedule& schedule,
                                     const StagePlace& place, TileBuilder& tiles)
    : body_(body),
      graph_(body.graph),
      facts_(body),
      space_(facts_.space),
      contraction_(*facts_.contraction),
      product_(tiled_product(facts_).value()),
      tile_(block_tile(facts_, schedule.get<BlockTilesFields>())),
      wide_(tile_.summed),
      tiles_(tiles),
      place_(place),
      others_(static_cast<size_t>(space_.parallel), 0) {
  for (size_t side = 0; side < 2; ++side) {
    operands_[side] = block_operand(facts_, product_, tile_, side);
    memory_[side] = tiles_.buffer(
        side == 0 ? "lhs" : "rhs",
        Type::get(tile_.stored, {tile_.stages, tile_.rows_in_memory(side), tile_.pitch[side]}),
        BufferRole::block);
    if (tile_.by_groups) tiles_.set_swizzled(memory_[side]);
  }
  if (operands_[0].box_axis || operands_[1].box_axis) boxes_.emplace(tiles_, tile_.stages);
  if (tile_.shares > 0) shares_ = tile_shares(product_, tile_).value();
  most_parts_ = shares_ ? shares_->most_parts() : tile_.splits;
  if (most_parts_ > 1) parts_ = tiles_.buffer("parts", type_of_parts(), BufferRole::shared);
  if (!tile_.by_warps) {
    sums_ = tiles_.buffer("sums", Type::get(wide_, {tile_.own[0], tile_.own[1]}), BufferRole::own);
    return;
  }
  const int64_t rows = tile_.own[0] / tile::kProductRows;
  const int64_t columns = tile_.own[1] / tile::kProductColumns;
  sums_ = tiles_.buffer("sums", Type::get(wide_, {rows, columns, 4}), BufferRole::own);
  const int64_t parts = tile_.numbers.parts;
  if (has_parts())
    for (size_t side = 0; side < 2; ++side)
      wild_[side] = tiles_.buffer(side == 0 ? "wild_lhs" : "wild_rhs",
                                  Type::get(DType::u32, {fills_in_hand()}), BufferRole::own);
  if (!tile_.by_groups) {
    factors_[0] = tiles_.buffer("rows", Type::get(DType::u32, {parts * rows, 4}), BufferRole::own);
    factors_[1] =
        tiles_.buffer("columns", Type::get(DType::u32, {parts * columns, 2}), BufferRole::own);
  }
  if (has_parts())
    step_sums_ = tiles_.buffer("step_sums", Type::get(wide_, {columns, 4}), BufferRole::own);
}

void BlockTilesBuilder::build() && {
  if (shares_)
    blocks_of_shares();
  else
    blocks(0);
  if (most_parts_ > 1 && shares_) add_shared_parts();
  if (most_parts_ > 1 && !shares_) add_parts(0);
}

void BlockTilesBuilder::blocks(size_t at) {
  if (at < product_.others.size()) {
    const int dim = product_.others[at];
    return tiles_.loop(Exec::blocks, space_.dims[static_cast<size_t>(dim)].name, extent(dim),
                       [&](const IndexExpr& i) {
                         others_[static_cast<size_t>(dim)] = i;
                         blocks(at + 1);
                       });
  }
  const auto [rows, columns] = tiles_of_sides(product_, tile_);
  const auto each_tile = [&, rows = rows, columns = columns] {
    tiles_.loop(Exec::blocks, "rows", rows, [&](const IndexExpr& i) {
      tiles_.loop(Exec::blocks, "columns", columns, [&](const IndexExpr& j) {
        first_ = {i * tile_.lines[0], j * tile_.lines[1]};
        in_block();
      });
    });
  };
  if (tile_.splits == 1) return each_tile();
  tiles_.loop(Exec::blocks, "part", tile_.splits, [&](const IndexExpr& part) {
    part_ = part;
    each_tile();
  });
}

void BlockTilesBuilder::in_block() {
  clear_sums();
  if (boxes_) boxes_->begin();
  const int64_t steps = steps_of_split(product_, tile_);
  first_step_ = part_ * steps;
  const auto fill_step = [&](const IndexExpr& s) { fill(s, s, {{IndexExpr(steps) - s}}); };
  fill_ahead(fill_step);
  open_loop(tiles_, Exec::loop, "step", steps,
            [&](const IndexExpr& s) { take_step(s, s, fill_step); });
  wait_for_all();
  results();
}

void BlockTilesBuilder::fill_ahead(const Step& fill_turn) {
  if (has_parts()) forget_wild();
  for (int64_t turn = 0; turn < ahead(); ++turn) fill_turn(turn);
}

// The step is one of the tile, or of the block's part of it.
void BlockTilesBuilder::take_step(const IndexExpr& turn, const IndexExpr& step,
                                  const Step& fill_turn) {
  if (ahead() == 0) fill_turn(turn);
  await(turn);
  // The operands of this step are there, and all have left the stage that is filled again.
  std::optional<IndexExpr> wild;
  if (has_parts())
    wild = vote_on_wild();
  else if (ahead() > 0 || threads_copy())
    tiles_.barrier();
  if (ahead() > 0) fill_turn(turn + IndexExpr(ahead()));
  if (wild)
    multiply_parts(stage_of(turn), step, *wild);
  else
    multiply(stage_of(turn));
  if (ahead() == 0) tiles_.barrier();
}

void BlockTilesBuilder::await(const IndexExpr& turn) {
  if (ahead() > 0 && threads_copy()) tiles_.wait(ahead() - 1);
  if (boxes_) boxes_->await(turn);
  if (tile_.by_groups && threads_copy()) tiles_.fence();
}

// Boxes that nobody waits for were not started.
void BlockTilesBuilder::wait_for_all() {
  if (ahead() > 0 && threads_copy()) tiles_.wait(0);
}

// Numbers of steps and tiles as TileShares has them. A turn is a number less that of the first.
void BlockTilesBuilder::blocks_of_shares() {
  const int64_t steps = shares_->steps, share = shares_->share;
  tiles_.loop(Exec::blocks, "share", shares_->blocks, [&](const IndexExpr& block) {
    const IndexExpr first = block * share, end = first + IndexExpr(share);
    const Step fill_turn = [&](const IndexExpr& turn) { fill_number(first, turn); };
    if (boxes_) boxes_->begin();
    fill_ahead(fill_turn);
    const tile::Span tiles = {floordiv(first, steps),
                              floordiv(end + IndexExpr(-1), steps) + IndexExpr(1)};
    tiles_.loop(
        Exec::loop, "tile", shares_->tiles,
        [&](const IndexExpr& t) {
          clear_sums();
          tile_at_hand_ = t;
          const tile::Span own = {first - t * steps, end - t * steps};
          tiles_.loop(
              Exec::loop, "step", steps,
              [&](const IndexExpr& s) { take_step(t * steps + s - first, s, fill_turn); }, own);
          move_to(t);
          block_ = block;
          part_ = block - shares_->first_block(t);
          more_parts_ = shares_->more_parts(t);
          results();
        },
        tiles);
    wait_for_all();
  });
}

// Copies ahead go on to the next tile, and those of threads to the share of the next block.
void BlockTilesBuilder::fill_number(const IndexExpr& first, const IndexExpr& turn) {
  const IndexExpr number = first + turn;
  move_to(floordiv(number, shares_->steps));
  if (tile_.stages > 1) inside_ = {{number, 0, shares_->all()}};
  fill(mod(number, shares_->steps), turn,
       {{IndexExpr(shares_->share) - turn, IndexExpr(shares_->all()) - number}});
  inside_.clear();
}

void BlockTilesBuilder::move_to(IndexExpr tile) {
  const auto [rows, columns] = tiles_of_sides(product_, tile_);
  first_[1] = mod(tile, columns) * tile_.lines[1];
  tile = floordiv(tile, columns);
  first_[0] = (product_.others.empty() ? tile : mod(tile, rows)) * tile_.lines[0];
  tile = floordiv(tile, rows);
  for (size_t i = product_.others.size(); i-- > 0;) {
    const int dim = product_.others[i];
    others_[static_cast<size_t>(dim)] = i == 0 ? tile : mod(tile, extent(dim));
    tile = floordiv(tile, extent(dim));
  }
}

void build_block_tiles(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                       TileBuilder& tiles) {
  BlockTilesBuilder(body, schedule, place, tiles).build();
}

Result<TileProgram> build_block_tiles(const KernelBody& body, const Schedule& schedule,
                                      std::string_view name) {
  TileBuilder tiles(name);
  build_block_tiles(body, schedule, kernel_place(body, tiles), tiles);
  return std::move(tiles).finish();
}

}  // namespace hone
