#pragma once

#include <functional>

#include "kernel/algorithms/block_chain.h"
#include "program/tiles/tile_builder.h"

namespace hone {

// The products of a block's warps on tensor cores. Each thread takes the numbers of its factors
// from wherever they are, two to a word. So operands need no place in memory of the block. Sums
// stay in registers.
class WarpProducts {
 public:
  using Scalar = tile::Scalar;
  // The number of a line at a point of the reduction, in the type of sums or of factors; 0 where
  // none is.
  using NumberOf =
      std::function<Scalar(size_t side, const IndexExpr& line, const IndexExpr& depth)>;
  using EachSum = std::function<void(const TileBuilder::Indices& sum, const IndexExpr& row,
                                     const IndexExpr& column)>;

  WarpProducts(TileBuilder& tiles, const WarpTiles& shape);

  tile::BufferId sums() const { return sums_; }
  int64_t threads() const;
  void clear();
  // Adds the products of this number of points. In each loop over threads it asks who has numbers.
  void multiply(int64_t points, const std::function<NumberOf()>& numbers);
  void each_sum(const IndexExpr& thread, const EachSum& body);

 private:
  using Indices = TileBuilder::Indices;

  std::array<IndexExpr, 2> first_lines(const IndexExpr& thread) const;
  void load_factors(size_t side, const IndexExpr& thread, const IndexExpr& step,
                    const NumberOf& number);
  Scalar word(Scalar low, Scalar high);

  TileBuilder& tiles_;
  const WarpTiles& shape_;
  tile::BufferId sums_ = 0;
  std::array<tile::BufferId, 2> factors_ = {};
};

}  // namespace hone
