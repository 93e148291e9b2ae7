#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kernel/algorithms/block_tiles.h"
#include "program/build/block_operand.h"
#include "program/build/box_stages.h"
#include "program/build/point_builder.h"

namespace hone {

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
// Tensor cores multiply numbers of f32 in parts. Threads note wild ones (split.h) when they store
// parts, and the block votes. If a step has some, threads multiply its numbers as f32 instead.
//
// If blocks take parts of the reduction, their sums lie in memory of all. A second phase adds them:
// those of the first part first, always in the same order. Blocks that share the steps of all tiles
// evenly store whole tiles themselves. The second phase has only tiles that they divide. Copies for
// the next tile run ahead there, too.
class BlockTilesBuilder {
 public:
  BlockTilesBuilder(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                    TileBuilder& tiles);
  void build() &&;  // adds the phases

 private:
  using Scalar = tile::Scalar;
  using Indices = PointBuilder::Indices;
  using Guards = PointBuilder::Guards;
  using Step = std::function<void(const IndexExpr&)>;

  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }
  bool has_parts() const { return tile_.numbers.parts > 1; }
  int64_t ahead() const { return tile_.stages - 1; }  // steps that are filled before one is taken
  int64_t fills_in_hand() const { return std::max<int64_t>(ahead(), 1); }  // that no step has taken
  // True if threads copy some operand themselves.
  bool threads_copy() const { return !operands_[0].box_axis || !operands_[1].box_axis; }
  // Turn n has the stage n mod stages.
  IndexExpr stage_of(const IndexExpr& turn) const { return mod(turn, tile_.stages); }
  void threads(const Step& body) { tiles_.loop(Exec::threads, "t", tile_.threads(), body); }

  // For each sum of a thread: where it is, and which line of the tile it belongs to on each side.
  using EachSum = std::function<void(const Indices& sum, const std::array<IndexExpr, 2>& lines)>;
  // A number of one side's line of the tile, at a point of the step.
  using FactorOf =
      std::function<Scalar(size_t side, const IndexExpr& line, const IndexExpr& depth)>;

  // ---- Blocks and their steps (block_tiles.cc) --------------------------------------------------
  void blocks(size_t at);
  void in_block();
  void fill_ahead(const Step& fill_turn);
  void take_step(const IndexExpr& turn, const IndexExpr& step, const Step& fill_turn);
  void await(const IndexExpr& turn);
  void wait_for_all();
  void blocks_of_shares();
  void fill_number(const IndexExpr& first, const IndexExpr& turn);
  void move_to(IndexExpr tile);

  // ---- Operands' ways to the block (block_tiles_operands.cc) ------------------------------------
  bool may_copy(size_t side) const;
  void forget_wild();
  void begin_wild(size_t side);
  IndexExpr vote_on_wild();
  void fill(const IndexExpr& step, const IndexExpr& turn, const Indices& left);
  void add_boxes(size_t side, const IndexExpr& step, std::vector<BoxStages::Box>& boxes) const;
  void fill(size_t side, const IndexExpr& step, const IndexExpr& stage);
  void fill_piece(size_t side, const IndexExpr& line, const IndexExpr& depth, const IndexExpr& step,
                  const IndexExpr& stage, PointBuilder& points, std::optional<Scalar>& wild);
  Indices place_in_memory(size_t side, const IndexExpr& stage, const IndexExpr& line,
                          const IndexExpr& depth, int64_t whole) const;
  void store_factor(size_t side, Indices place, Scalar number);
  Indices factor_index(size_t side, const IndexExpr& line, const IndexExpr& depth,
                       Guards& gaps) const;
  void spread(IndexExpr at, const std::vector<int>& dims, Indices& point) const;

  // ---- Products (block_tiles_products.cc) -------------------------------------------------------
  void each_sum(const IndexExpr& thread, const EachSum& body);
  IndexExpr line_of(size_t side, const IndexExpr& thread, const IndexExpr& own) const;
  size_t side_in_memory() const;
  void each_sum_of_warp(const IndexExpr& thread, const EachSum& body);
  std::array<IndexExpr, 2> first_of_warp(const IndexExpr& thread) const;
  void clear_sums();
  void multiply(const IndexExpr& stage);
  void multiply_by_thread(const IndexExpr& thread, const FactorOf& factor);
  void multiply_parts(const IndexExpr& stage, const IndexExpr& step, const IndexExpr& wild);
  void multiply_by_warps(const IndexExpr& stage);
  void load_factors(size_t side, int64_t part, const IndexExpr& first, const IndexExpr& lane,
                    const IndexExpr& stage, const IndexExpr& depth);
  void add_products(int64_t i, const IndexExpr& stage);
  void add_products_of_warps(int64_t i, int64_t left, int64_t right);
  void add_product_of_groups(int64_t left, int64_t right, const IndexExpr& stage);
  void each_step_sum(const std::function<void(const Indices& at)>& body);

  // ---- Results, and parts of the reduction (block_tiles_results.cc) -----------------------------
  void results();
  Indices point_of(const std::array<IndexExpr, 2>& lines, Guards& guards) const;
  void store_part(const Indices& sum, const std::array<IndexExpr, 2>& lines, const Indices& point,
                  Guards guards);
  Type type_of_parts() const;
  static Indices place_of_part(const IndexExpr& part, const Indices& point);
  void add_parts(int dim);
  void add_parts_here();
  void add_parts_of(const Indices& point, const Guards& guards,
                    const std::function<Scalar(int64_t part)>& part_of);
  IndexExpr is_later(const IndexExpr& part) const;
  Indices place_in_block(const IndexExpr& block, const IndexExpr& which,
                         const std::array<IndexExpr, 2>& lines) const;
  void add_shared_parts();
  void add_shared_parts(const IndexExpr& first, const std::array<IndexExpr, 2>& lines);

  static constexpr int64_t kUnrolledCopies = 16;

  const KernelBody& body_;
  const Graph& graph_;
  const KernelFacts facts_;
  const KernelSpace& space_;
  const Contraction& contraction_;
  const TiledProduct product_;
  const BlockTile tile_;
  const DType wide_;
  TileBuilder& tiles_;
  const StagePlace place_;
  Indices others_;                           // per dim of the results: the point, but of lines
  std::array<IndexExpr, 2> first_ = {0, 0};  // line of the tile
  std::array<tile::BufferId, 2> memory_ = {}, factors_ = {};
  std::array<tile::BufferId, 2> wild_ = {};  // apart: the fills of a side do not wait for the other
  tile::BufferId sums_ = 0, step_sums_ = 0, parts_ = 0;
  IndexExpr part_ = 0, first_step_ = 0;   // of the reduction, that the block takes
  IndexExpr tile_at_hand_ = 0;            // if blocks share steps
  std::optional<TileShares> shares_;      // none: each block has a tile, or a part of one
  int64_t most_parts_ = 1;                // of a tile
  IndexExpr block_ = 0, more_parts_ = 0;  // of the tile, if blocks share steps
  Guards inside_;                         // of what is copied ahead: the step is there
  std::array<BlockOperand, 2> operands_;
  std::optional<BoxStages> boxes_;  // none: threads copy both operands
};

}  // namespace hone
