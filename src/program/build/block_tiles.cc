#include "kernel/algorithms/block_tiles.h"

#include <algorithm>

#include "program/build/algorithms.h"
#include "program/build/block_operand.h"
#include "program/build/box_stages.h"
#include "program/build/split.h"
#include "program/build/tile_parts.h"
#include "program/tiles/bounds.h"
#include "target/gpu.h"

namespace hone {

namespace {

// A tile of products by a block. Step by step along the reduction, its threads copy what the tile
// needs of both operands to the memory of the block, and wait for each other. Then each of them
// multiplies a tile of its own, whose sums stay in registers.
//
// Copies may run ahead: the memory has several stages, and a step fills the one that the step
// before it has left.
//
// If warpgroups multiply, operands come as boxes, which one thread starts. Threads copy those that
// are no parameters, or of another type, as ever, to the same swizzled rows.
//
// If blocks take parts of the reduction, their sums lie in memory of all. A second phase adds them:
// those of the first part first, always in the same order. Blocks that share the steps of all tiles
// evenly store whole tiles themselves. The second phase has only tiles that they divide. Copies for
// the next tile run ahead there, too.
class BlockTilesBuilder {
 public:
  BlockTilesBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : body_(body),
        graph_(body.graph),
        facts_(body),
        space_(facts_.space),
        contraction_(*facts_.contraction),
        product_(tiled_product(facts_).value()),
        tile_(block_tile(facts_, schedule.get<BlockTilesFields>())),
        wide_(tile_.summed),
        tiles_(name),
        place_(kernel_place(body, tiles_)),
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
      sums_ =
          tiles_.buffer("sums", Type::get(wide_, {tile_.own[0], tile_.own[1]}), BufferRole::own);
      return;
    }
    const int64_t rows = tile_.own[0] / tile::kProductRows;
    const int64_t columns = tile_.own[1] / tile::kProductColumns;
    sums_ = tiles_.buffer("sums", Type::get(wide_, {rows, columns, 4}), BufferRole::own);
    const int64_t parts = tile_.numbers.parts;
    if (!tile_.by_groups) {
      factors_[0] =
          tiles_.buffer("rows", Type::get(DType::u32, {parts * rows, 4}), BufferRole::own);
      factors_[1] =
          tiles_.buffer("columns", Type::get(DType::u32, {parts * columns, 2}), BufferRole::own);
    }
    if (parts > 1)
      step_sums_ = tiles_.buffer("step_sums", Type::get(wide_, {columns, 4}), BufferRole::own);
  }

  TileProgram build() && {
    if (shares_)
      blocks_of_shares();
    else
      blocks(0);
    if (most_parts_ > 1 && shares_) add_shared_parts();
    if (most_parts_ > 1 && !shares_) add_parts(0);
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
  using Indices = PointBuilder::Indices;
  using Guards = PointBuilder::Guards;
  using Step = std::function<void(const IndexExpr&)>;

  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }

  // ---- Operands' ways to the block -------------------------------------------------------------

  bool may_copy(size_t side) const {
    return tile_.stages > 1 && operands_[side].piece * bits(tile_.stored) >= 32;
  }

  // True if threads copy some operand themselves.
  bool threads_copy() const { return !operands_[0].box_axis || !operands_[1].box_axis; }

  // ---- Blocks ----------------------------------------------------------------------------------

  void blocks(size_t at) {
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

  void in_block() {
    clear_sums();
    if (boxes_) boxes_->begin();
    const int64_t steps = steps_of_split(product_, tile_);
    first_step_ = part_ * steps;
    const auto fill_step = [&](const IndexExpr& s) { fill(s, s, {{IndexExpr(steps) - s}}); };
    fill_ahead(fill_step);
    open_loop(tiles_, Exec::loop, "step", steps,
              [&](const IndexExpr& s) { take_step(s, fill_step); });
    wait_for_all();
    results();
  }

  // ---- Steps of a block, in turn ---------------------------------------------------------------

  // Turn n has the stage n mod stages.
  IndexExpr stage_of(const IndexExpr& turn) const { return mod(turn, tile_.stages); }

  void fill_ahead(const Step& fill_turn) {
    for (int64_t turn = 0; turn + 1 < tile_.stages; ++turn) fill_turn(turn);
  }

  void take_step(const IndexExpr& turn, const Step& fill_turn) {
    const int64_t ahead = tile_.stages - 1;
    if (ahead == 0) fill_turn(turn);
    await(turn);
    // The operands of this step are there, and all have left the stage that is filled again.
    if (ahead > 0 || threads_copy()) tiles_.barrier();
    if (ahead > 0) fill_turn(turn + IndexExpr(ahead));
    multiply(stage_of(turn));
    if (ahead == 0) tiles_.barrier();
  }

  void await(const IndexExpr& turn) {
    const int64_t ahead = tile_.stages - 1;
    if (ahead > 0 && threads_copy()) tiles_.wait(ahead - 1);
    if (boxes_) boxes_->await(turn);
    if (tile_.by_groups && threads_copy()) tiles_.fence();
  }

  // Boxes that nobody waits for were not started.
  void wait_for_all() {
    if (tile_.stages > 1 && threads_copy()) tiles_.wait(0);
  }

  // ---- Blocks that share all steps -------------------------------------------------------------

  // Numbers of steps and tiles as TileShares has them. A turn is a number less that of the first.
  void blocks_of_shares() {
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
            const tile::Span own = {first - t * steps, end - t * steps};
            tiles_.loop(
                Exec::loop, "step", steps,
                [&](const IndexExpr& s) { take_step(t * steps + s - first, fill_turn); }, own);
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
  void fill_number(const IndexExpr& first, const IndexExpr& turn) {
    const IndexExpr number = first + turn;
    move_to(floordiv(number, shares_->steps));
    if (tile_.stages > 1) inside_ = {{number, 0, shares_->all()}};
    fill(mod(number, shares_->steps), turn,
         {{IndexExpr(shares_->share) - turn, IndexExpr(shares_->all()) - number}});
    inside_.clear();
  }

  void move_to(IndexExpr tile) {
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

  // ---- Operands --------------------------------------------------------------------------------

  // The step is one of the block's, the turn that of its stage. Boxes come if all of `left` are
  // above 0: they are waited for then.
  void fill(const IndexExpr& step, const IndexExpr& turn, const Indices& left) {
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
  void add_boxes(size_t side, const IndexExpr& step, std::vector<BoxStages::Box>& boxes) const {
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
  void fill(size_t side, const IndexExpr& step, const IndexExpr& stage) {
    const int64_t pieces = tile_.lines[side] * tile_.depth / operands_[side].piece;
    const int64_t threads = std::min(tile_.threads(), pieces), each = pieces / threads;
    tiles_.loop(Exec::threads, "t", threads, [&](const IndexExpr& thread) {
      PointBuilder points(body_, tiles_, place_);
      const Exec exec = each <= kUnrolledCopies ? Exec::unroll : Exec::loop;
      open_loop(tiles_, exec, "u", each, [&](const IndexExpr& u) {
        const IndexExpr at = u * threads + thread;
        const int64_t next = (operands_[side].is_depth_next ? tile_.depth : tile_.lines[side]) /
                             operands_[side].piece;
        IndexExpr line = floordiv(at, next), depth = mod(at, next) * operands_[side].piece;
        if (!operands_[side].is_depth_next) std::swap(line, depth);
        fill_piece(side, line, depth, step, stage, points);
      });
    });
  }

  void fill_piece(size_t side, const IndexExpr& line, const IndexExpr& depth, const IndexExpr& step,
                  const IndexExpr& stage, PointBuilder& points) {
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
      store_factor(side, place_in_memory(side, stage, at_line, at_depth, 1),
                   points.factor(space_.anchor, side, at, {}, own));
    }
  }

  // Swizzled memory swaps pieces itself. Lines across are in parts of as many as a row has.
  Indices place_in_memory(size_t side, const IndexExpr& stage, const IndexExpr& line,
                          const IndexExpr& depth, int64_t whole) const {
    if (!tile_.by_warps) return {stage, depth, line};
    if (!tile_.by_groups) return {stage, line, swizzled(tile_, line, depth, whole)};
    if (operands_[side].is_along) return {stage, line, depth};
    const int64_t in_row = tile_.depth;
    return {stage, floordiv(line, in_row) * in_row + depth,
            mod(floordiv(line, whole), in_row / whole) * whole + mod(line, whole)};
  }

  void store_factor(size_t side, Indices place, Scalar number) {
    if (tile_.numbers.parts == 1)
      return tiles_.store(memory_[side], place, tiles_.cast(number, tile_.stored));
    for (Scalar part : split_number(tiles_, number, tile_.numbers)) {
      tiles_.store(memory_[side], place, part);
      place[1] = place[1] + IndexExpr(tile_.lines[side]);
    }
  }

  // A point of the anchor's relation; `gaps` get the guards that tell whether it is there.
  Indices factor_index(size_t side, const IndexExpr& line, const IndexExpr& depth,
                       Guards& gaps) const {
    Indices point = others_;
    const IndexExpr at = first_[side] + line;
    spread(at, product_.sides[side], point);
    gaps.insert(gaps.end(), inside_.begin(), inside_.end());
    if (product_.lines[side] % tile_.lines[side] != 0)
      gaps.push_back({at, 0, product_.lines[side]});
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
  void spread(IndexExpr at, const std::vector<int>& dims, Indices& point) const {
    for (size_t i = dims.size(); i-- > 0;) {
      const auto dim = static_cast<size_t>(dims[i]);
      point[dim] = i == 0 ? at : mod(at, extent(dims[i]));
      at = floordiv(at, extent(dims[i]));
    }
  }

  // ---- Products --------------------------------------------------------------------------------

  void threads(const Step& body) { tiles_.loop(Exec::threads, "t", tile_.threads(), body); }

  // For each sum of a thread: where it is, and which line of the tile it belongs to on each side.
  using EachSum = std::function<void(const Indices& sum, const std::array<IndexExpr, 2>& lines)>;
  void each_sum(const IndexExpr& thread, const EachSum& body) {
    if (tile_.by_warps) return each_sum_of_warp(thread, body);
    open_loop(tiles_, Exec::unroll, "i", tile_.own[0], [&](const IndexExpr& i) {
      open_loop(tiles_, Exec::unroll, "j", tile_.own[1], [&](const IndexExpr& j) {
        body({i, j}, {line_of(0, thread, i), line_of(1, thread, j)});
      });
    });
  }

  // Threads side by side have lines side by side: those of the side along which results lie so.
  IndexExpr line_of(size_t side, const IndexExpr& thread, const IndexExpr& own) const {
    const size_t next = side_in_memory();
    const IndexExpr at =
        side == next ? mod(thread, tile_.across(next)) : floordiv(thread, tile_.across(next));
    return own * tile_.across(side) + at;
  }

  size_t side_in_memory() const {
    const std::vector<int>& rows = product_.sides[0];
    return !rows.empty() && rows.back() == space_.parallel - 1 ? 0 : 1;
  }

  void each_sum_of_warp(const IndexExpr& thread, const EachSum& body) {
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
  std::array<IndexExpr, 2> first_of_warp(const IndexExpr& thread) const {
    const IndexExpr warp = floordiv(thread, kWarpLanes);
    return {floordiv(warp, tile_.across(1)) * tile_.own[0],
            mod(warp, tile_.across(1)) * tile_.own[1]};
  }

  void clear_sums() {
    threads([&](const IndexExpr& thread) {
      const Scalar zero = tiles_.zero(wide_);
      each_sum(thread, [&](const Indices& sum, const auto&) { tiles_.store(sums_, sum, zero); });
    });
  }

  void multiply(const IndexExpr& stage) {
    if (tile_.by_groups) return add_products(0, stage);
    if (tile_.by_warps) return multiply_by_warps(stage);
    threads([&](const IndexExpr& thread) {
      each_sum(thread, [&](const Indices& sum, const std::array<IndexExpr, 2>& lines) {
        const Scalar before = tiles_.load(sums_, sum);
        const Scalar after = tiles_.carry(
            Exec::loop, "k", tile_.depth, before, Opcode::add,
            [&](const IndexExpr& k, Scalar so_far) {
              const Scalar a = tiles_.load(memory_[0], {stage, k, lines[0]});
              const Scalar b = tiles_.load(memory_[1], {stage, k, lines[1]});
              if (is_real(wide_)) return tiles_.fma(a, b, so_far);
              return tiles_.compute(Opcode::add, {so_far, tiles_.compute(Opcode::mul, {a, b})});
            });
        tiles_.store(sums_, sum, after);
      });
    });
  }

  // As many products at a time as one word of each line makes eight: factors to registers, then all
  // warps multiply.
  void multiply_by_warps(const IndexExpr& stage) {
    constexpr int64_t kPoints = tile::kProductWords * 2;
    open_loop(tiles_, Exec::loop, "q", tile_.depth / kPoints, [&](const IndexExpr& q) {
      threads([&](const IndexExpr& thread) {
        const std::array<IndexExpr, 2> first = first_of_warp(thread);
        for (size_t side = 0; side < 2; ++side)
          for (int64_t part = 0; part < tile_.numbers.parts; ++part)
            load_factors(side, part, first[side], mod(thread, kWarpLanes), stage, q * kPoints);
      });
      for (int64_t i = 0; i < tile_.own[0] / tile::kProductRows; ++i) add_products(i, stage);
    });
  }

  // Four matrices of 8 lines at a time, if there are as many. Two of rows below each other come
  // before those of the next 8 points. For columns it is the other way round.
  void load_factors(size_t side, int64_t part, const IndexExpr& first, const IndexExpr& lane,
                    const IndexExpr& stage, const IndexExpr& depth) {
    constexpr int64_t kLines = tile::kMatrixRows, kPoints = kSwizzledPiece;
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
           .from_index = {stage, line, swizzled(tile_, line, depth + further * kPoints, kPoints)},
           .count = 2 * lines});
    });
  }

  // For one matrix of rows, with all columns of the warp; or for the rows of warpgroups. Tensor
  // cores cut sums off, so that long ones of them are too small. Therefore products of parts are
  // summed there for one step alone, the small ones first; a plain addition, which rounds, adds
  // them to the others.
  void add_products(int64_t i, const IndexExpr& stage) {
    const bool has_parts = tile_.numbers.parts > 1;
    if (has_parts)
      each_step_sum([&](const Indices& at) { tiles_.store(step_sums_, at, tiles_.zero(wide_)); });
    for (int64_t less = tile_.numbers.parts - 1; less >= 0; --less)
      for (int64_t part = 0; part <= less; ++part) {
        if (tile_.by_groups)
          add_product_of_groups(part, less - part, stage);
        else
          add_products_of_warps(i, part, less - part);
      }
    if (!has_parts) return;
    each_step_sum([&](const Indices& at) {
      const Indices sum = {i, at[0], at[1]};
      const Scalar more = tiles_.load(step_sums_, at);
      tiles_.store(sums_, sum, tiles_.compute(Opcode::add, {tiles_.load(sums_, sum), more}));
    });
  }

  void add_products_of_warps(int64_t i, int64_t left, int64_t right) {
    const int64_t columns = tile_.own[1] / tile::kProductColumns;
    const int64_t rows = tile_.own[0] / tile::kProductRows;
    const bool has_parts = tile_.numbers.parts > 1;
    for (int64_t j = 0; j < columns; ++j)
      tiles_.product({.sums = has_parts ? step_sums_ : sums_,
                      .lhs = factors_[0],
                      .rhs = factors_[1],
                      .sums_index = has_parts ? Indices{j} : Indices{i, j},
                      .lhs_index = {left * rows + i},
                      .rhs_index = {right * columns + j},
                      .numbers = tile_.stored});
  }

  void add_product_of_groups(int64_t left, int64_t right, const IndexExpr& stage) {
    const bool has_parts = tile_.numbers.parts > 1;
    tiles_.group_product({.sums = has_parts ? step_sums_ : sums_,
                          .lhs = memory_[0],
                          .rhs = memory_[1],
                          .sums_index = has_parts ? Indices{} : Indices{0},
                          .lhs_index = {stage, left * tile_.lines[0]},
                          .rhs_index = {stage, right * tile_.lines[1]},
                          .columns = tile_.lines[1],
                          .numbers = tile_.stored,
                          .lhs_across = !operands_[0].is_along,
                          .rhs_across = !operands_[1].is_along});
  }

  void each_step_sum(const std::function<void(const Indices& at)>& body) {
    threads([&](const IndexExpr&) {
      open_loop(tiles_, Exec::unroll, "j", tile_.own[1] / tile::kProductColumns, [&](IndexExpr j) {
        tiles_.loop(Exec::unroll, "n", 4, [&](const IndexExpr& n) { body({j, n}); });
      });
    });
  }

  // ---- Results ---------------------------------------------------------------------------------

  void results() {
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
  Indices point_of(const std::array<IndexExpr, 2>& lines, Guards& guards) const {
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

  // ---- Parts of the reduction ------------------------------------------------------------------

  void store_part(const Indices& sum, const std::array<IndexExpr, 2>& lines, const Indices& point,
                  Guards guards) {
    if (!shares_)
      return tiles_.store(parts_, place_of_part(part_, point), tiles_.load(sums_, sum), guards);
    // As simple as the index will be, so that the guard is seen to bound it.
    const IndexExpr which = TileBounds(tiles_.program()).simplified(is_later(part_));
    guards.push_back({more_parts_, 1, most_parts_});
    guards.push_back({which, 0, 2});
    tiles_.store(parts_, place_in_block(block_, which, lines), tiles_.load(sums_, sum), guards);
  }

  Type type_of_parts() const {
    const size_t next = side_in_memory();
    if (shares_)
      return Type::get(wide_, {shares_->blocks, 2, tile_.lines[1 - next], tile_.lines[next]});
    Dims dims = {most_parts_};
    for (int dim = 0; dim < space_.parallel; ++dim) dims.push_back(extent(dim));
    return Type::get(wide_, dims);
  }

  static Indices place_of_part(const IndexExpr& part, const Indices& point) {
    Indices place = {part};
    place.insert(place.end(), point.begin(), point.end());
    return place;
  }

  // A thread adds the parts of a point of the results.
  void add_parts(int dim) {
    if (dim == space_.parallel && dim > 0) return add_parts_here();
    const std::string_view name =
        dim == space_.parallel ? "once"
                               : std::string_view(space_.dims[static_cast<size_t>(dim)].name);
    const Dim points = dim == space_.parallel ? Dim(1) : extent(dim);
    tiles_.loop(Exec::threads, name, points, [&](const IndexExpr& i) {
      if (dim == space_.parallel) return add_parts_here();
      others_[static_cast<size_t>(dim)] = i;
      add_parts(dim + 1);
    });
  }

  void add_parts_here() {
    add_parts_of(others_, {},
                 [&](int64_t part) { return tiles_.load(parts_, place_of_part(part, others_)); });
  }

  void add_parts_of(const Indices& point, const Guards& guards,
                    const std::function<Scalar(int64_t part)>& part_of) {
    Scalar sum = part_of(0);
    for (int64_t part = 1; part < most_parts_; ++part)
      sum = tiles_.compute(Opcode::add, {sum, part_of(part)});
    PointBuilder points(body_, tiles_, place_);
    points.pin(space_.anchor);
    points.bind(graph_.result(space_.anchor), sum);
    points.store_outputs(point, guards);
  }

  // ---- Parts of shared tiles -------------------------------------------------------------------

  // A block has two of them at most. One is the first of the tile that goes on in the next block.
  // The other is a later one of the tile that came from the block before.
  IndexExpr is_later(const IndexExpr& part) const {
    return floordiv(part + IndexExpr(most_parts_ - 2), most_parts_ - 1);
  }

  Indices place_in_block(const IndexExpr& block, const IndexExpr& which,
                         const std::array<IndexExpr, 2>& lines) const {
    const size_t next = side_in_memory();
    return {block, which, lines[1 - next], lines[next]};
  }

  // A thread adds the parts of a point of a tile. Each block but the last may be the first of one.
  void add_shared_parts() {
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
  void add_shared_parts(const IndexExpr& first, const std::array<IndexExpr, 2>& lines) {
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

  static constexpr int64_t kUnrolledCopies = 16;

  const KernelBody& body_;
  const Graph& graph_;
  const KernelFacts facts_;
  const KernelSpace& space_;
  const Contraction& contraction_;
  const TiledProduct product_;
  const BlockTile tile_;
  const DType wide_;
  TileBuilder tiles_;
  const StagePlace place_;
  Indices others_;                           // per dim of the results: the point, but of lines
  std::array<IndexExpr, 2> first_ = {0, 0};  // line of the tile
  std::array<tile::BufferId, 2> memory_ = {}, factors_ = {};
  tile::BufferId sums_ = 0, step_sums_ = 0, parts_ = 0;
  IndexExpr part_ = 0, first_step_ = 0;   // of the reduction, that the block takes
  std::optional<TileShares> shares_;      // none: each block has a tile, or a part of one
  int64_t most_parts_ = 1;                // of a tile
  IndexExpr block_ = 0, more_parts_ = 0;  // of the tile, if blocks share steps
  Guards inside_;                         // of what is copied ahead: the step is there
  std::array<BlockOperand, 2> operands_;
  std::optional<BoxStages> boxes_;  // none: threads copy both operands
};

}  // namespace

Result<TileProgram> build_block_tiles(const KernelBody& body, const Schedule& schedule,
                                      std::string_view name) {
  return BlockTilesBuilder(body, schedule, name).build();
}

}  // namespace hone
