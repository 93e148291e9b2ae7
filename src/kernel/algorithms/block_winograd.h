#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernel/algorithms/winograd.h"

namespace hone {

// A conv by transformed tiles on a GPU. Data are transformed by groups of channels and products of
// a tile: [groups, products, tiles, channels], or channels before tiles. Each group's product has a
// matrix of weights: [groups, products, channels, features]. Sums are [groups, products, tiles,
// features], or features before tiles.
struct BlockWinograd {
  WinogradDims dims;
  WinogradShape shape;          // with all features of a group in one panel
  std::vector<int64_t> across;  // tiles along each spatial dim
  int64_t batch = 1;
  int64_t tiles = 1;           // of all images
  DType dtype = DType::f32;    // of transformed numbers
  bool channels_last = false;  // neighbours in memory of the data are channels
  bool features_last = false;  // those of the results are features
  KernelBody product;          // a dot of the transformed data and weights, in this order

  std::vector<Dim> data_dims() const { return dims_of(shape.channels, channels_last); }
  std::vector<Dim> sums_dims() const { return dims_of(shape.features, features_last); }
  // The place of a line of a matrix, a channel or feature, at a tile.
  std::vector<IndexExpr> place(const IndexExpr& group, const IndexExpr& product,
                               const IndexExpr& tile, const IndexExpr& line, bool is_last) const {
    if (is_last) return {group, product, tile, line};
    return {group, product, line, tile};
  }
  int64_t numbers() const;  // transformed, of data and sums
  int64_t bytes() const;    // that they take

 private:
  std::vector<Dim> dims_of(int64_t lines, bool is_last) const {
    if (is_last) return {dims.groups, shape.products, tiles, lines};
    return {dims.groups, shape.products, lines, tiles};
  }
};

// `points`: of kWinogradPoints. An error says why the body has no such transform on a GPU.
Result<BlockWinograd> block_winograd(const KernelBody& body, const KernelFacts& facts, int points);

// AlgorithmDef::roles(): by the permitted numbers of points, with what prices ask of the product.
struct BlockWinogradRoles {
  struct One {
    BlockWinograd winograd;
    KernelFacts product;
  };
  std::vector<One> all;
  const One* with(int64_t points) const;  // null: not permitted
};

}  // namespace hone
