#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "kernel/algorithms/winograd.h"
#include "program/build/point_builder.h"

namespace hone {

// Writes the transforms of a tile into the open loops: its data, one channel at a time, and its
// results, those of one feature.
class WinogradTile {
 public:
  using Scalar = tile::Scalar;
  using Line = std::vector<Scalar>;
  using Guards = PointBuilder::Guards;

  // `covered`: the points along each spatial dim that all tiles have together. Transformed numbers
  // are `wide`.
  WinogradTile(const KernelFacts& facts, const WinogradDims& dims, int64_t points,
               std::vector<int64_t> covered, DType wide, TileBuilder& tiles, PointBuilder& builder);

  // The point at hand, by the space's dims; the tile's first point, by spatial dim.
  IndexExpr& at(int dim) { return at_[static_cast<size_t>(dim)]; }
  IndexExpr& corner(size_t spatial) { return corner_[spatial]; }

  // The transformed data of the channel at hand. They are those of zeros where a guard does not
  // hold.
  Line data(const Guards& guards);
  // Stores the results of the feature at hand, if all guards hold, from the sums of its products.
  void store_results(const Line& sums, const Guards& guards);

 private:
  using Map = std::function<Line(const Line&)>;
  using Multiples = std::vector<std::pair<double, Scalar>>;

  NodeId anchor() const { return facts_.space.anchor; }
  Dim extent(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].extent; }
  size_t spatial() const { return dims_.spatial.size(); }

  bool exists(std::span<const size_t> point) const;
  Guards move_to(std::span<const size_t> point);
  Scalar data_at_hand(const Guards& gaps);
  Scalar sum(Scalar a, Scalar b) { return tiles_.compute(Opcode::add, {a, b}); }
  Scalar difference(Scalar a, Scalar b) { return tiles_.compute(Opcode::sub, {a, b}); }
  Scalar combined(Multiples terms);
  Scalar half_of_row(const std::vector<double>& row, const Line& line, size_t rest);
  Line transformed_data(const Line& d);
  Line transformed_sums(const Line& m);
  Line along_all(Line now, const Map& map);
  void each_index(int64_t side, const std::function<void(std::span<const size_t>)>& f) const;

  const KernelFacts& facts_;
  const WinogradDims& dims_;
  const WinogradTransform transform_;
  const std::vector<int64_t> covered_;
  const DType wide_;
  TileBuilder& tiles_;
  PointBuilder& points_;
  std::vector<IndexExpr> at_, corner_;
};

}  // namespace hone
