#include "program/build/block_operand.h"

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"
#include "program/tiles/tiles.h"

namespace hone {

namespace {

class OperandReader {
 public:
  OperandReader(const KernelFacts& facts, const TiledProduct& product, const BlockTile& tile,
                size_t side)
      : facts_(facts), product_(product), tile_(tile), side_(side) {}

  BlockOperand read() && {
    made_.is_depth_next = is_depth_next();
    // Warpgroups take tf32 in no other way: threads store what lies across.
    made_.is_along =
        tile_.by_warps && (!tile_.by_groups || made_.is_depth_next || tile_.numbers.are_tf32);
    find_input();
    made_.piece = piece();
    if (tile_.by_groups && made_.piece == tile_.piece()) made_.box_axis = box_axis();
    return std::move(made_);
  }

 private:
  bool is_depth_next() const {
    if (product_.depth.empty()) return false;
    const auto last = static_cast<size_t>(product_.depth.back());
    return std::ranges::any_of(facts_.arrays, [&](const KernelFacts::Array& array) {
      return array.side == static_cast<int>(side_) && last < array.stride.size() &&
             std::abs(array.stride[last]) == 1;
    });
  }

  void find_input() {
    const Graph& graph = facts_.body.graph;
    const auto input =
        std::ranges::find(graph.inputs(), graph.operands(facts_.space.anchor)[side_]);
    if (input == graph.inputs().end() || graph.type(*input).dtype() != tile_.stored) return;
    made_.input = static_cast<size_t>(input - graph.inputs().begin());
    made_.reads = stored_index(facts_.body.inputs[*made_.input], facts_.contraction->reads[side_]);
  }

  // The dims along which a row of the block's memory goes.
  const std::vector<int>& dims_along() const {
    return made_.is_along ? product_.depth : product_.sides[side_];
  }

  int64_t piece() const {
    const std::vector<int>& dims = dims_along();
    if (!made_.input || dims.size() != 1 || made_.is_depth_next != made_.is_along) return 1;
    const AccessRelation relation = relation_of(facts_.body.graph, facts_.space.anchor);
    const bool has_guards = !relation.operands[side_].at(0).guards.empty();
    if (has_guards || made_.reads.back() != IndexExpr::iter(dims[0])) return 1;
    const Dim extent = facts_.space.dims[static_cast<size_t>(dims[0])].extent;
    int64_t count = 128 / bits(tile_.stored);
    while (!extent.divisible_by(count)) count /= 2;
    return count;
  }

  // Lines of several dims are a box if a tile has some of the last one.
  std::optional<int> box_axis() const {
    const std::vector<int>& lines = product_.sides[side_];
    if (lines.empty() || product_.depth.size() != 1 || made_.reads.size() > tile::kMostBoxDims)
      return std::nullopt;
    const Dim extent = facts_.space.dims[static_cast<size_t>(lines.back())].extent;
    if (lines.size() > 1 && !extent.divisible_by(tile_.lines[side_])) return std::nullopt;
    const int along = dims_along()[0], across = made_.is_along ? lines.back() : product_.depth[0];
    std::optional<int> axis;
    for (size_t i = 0; i + 1 < made_.reads.size(); ++i) {
      if (made_.reads[i] == IndexExpr::iter(across))
        axis = static_cast<int>(i);
      else if (made_.reads[i].mentions(across) || made_.reads[i].mentions(along))
        return std::nullopt;
    }
    return axis;
  }

  const KernelFacts& facts_;
  const TiledProduct& product_;
  const BlockTile& tile_;
  const size_t side_;
  BlockOperand made_;
};

}  // namespace

BlockOperand block_operand(const KernelFacts& facts, const TiledProduct& product,
                           const BlockTile& tile, size_t side) {
  return OperandReader(facts, product, tile, side).read();
}

}  // namespace hone
