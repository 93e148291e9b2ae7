#pragma once

#include <span>

#include "program/tiles/tile_builder.h"

namespace hone {

// Stages of a block's memory that boxes of inputs fill (tile::TensorCopy). An mbarrier for each
// tells when all boxes of a step have come. A turn counts the steps of the block: it has stage turn
// mod stages, and is the phase turn / stages of that mbarrier.
class BoxStages {
 public:
  using Indices = TileBuilder::Indices;
  struct Box {
    tile::BufferId to;
    int64_t to_row;  // of the stage
    tile::BufferId from;
    Indices first;  // of it, in the input
    int axis;       // along which its rows lie
    int64_t rows;
  };

  BoxStages(TileBuilder& tiles, int64_t stages);

  IndexExpr stage(const IndexExpr& turn) const { return mod(turn, stages_); }
  // Once a block, before all else.
  void begin();
  // Starts the boxes of a turn if all of `left`, steps that are left then, are above 0.
  void start(const IndexExpr& turn, std::span<const Box> boxes, std::span<const IndexExpr> left);
  // All threads wait for the boxes of the turn.
  void await(const IndexExpr& turn);

 private:
  void start_in_thread(const IndexExpr& turn, std::span<const Box> boxes,
                       std::span<const IndexExpr> left);

  TileBuilder& tiles_;
  const int64_t stages_;
  tile::BufferId full_;
};

}  // namespace hone
