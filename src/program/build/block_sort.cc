#include "program/build/algorithms.h"
#include "program/build/block_builder.h"
#include "program/build/block_sorter.h"

namespace hone {

namespace {

class BlockSortBuilder : BlockBuilder {
 public:
  BlockSortBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : BlockBuilder(body, name),
        node_(graph_.producer(graph_.outputs()[0])),
        op_(graph_.op(node_)),
        type_(graph_.type(graph_.outputs()[0])),
        axis_(op_.integer("axis")),
        keys_(static_cast<size_t>(op_.integer("keys"))) {
    const auto& own = schedule.get<BlockSortFields>();
    const int axis = static_cast<int>(axis_);
    shape_ = sort_shape(graph_.type(operand(0)).dim(axis).value(), type_.dim(axis).value(),
                        own.warps, own.pairs);
  }

  TileProgram build() && {
    BlockSorter::Rows rows;
    for (int dim = 0; dim < type_.rank(); ++dim)
      if (dim != axis_) rows.dims.push_back(type_.dim(dim));
    for (size_t k = 0; k < keys_; ++k) rows.keys.push_back(graph_.type(operand(k)).dtype());
    rows.descends = op_.flag("descending");
    rows.read = [&](const Indices& row, const IndexExpr& at, const Guards& guards) {
      PointBuilder points = points_here();
      std::vector<Scalar> keys;
      for (size_t k = 0; k < keys_; ++k)
        keys.push_back(element(points, k, in_row(row, at), guards));
      return keys;
    };
    rows.write = [&](const Indices& row, const IndexExpr& place, const std::vector<Scalar>& keys,
                     Scalar position, const Guards& guards) {
      PointBuilder points = points_here();
      std::optional<IndexExpr> from;
      for (size_t k = 0; k < graph_.outputs().size(); ++k) {
        const size_t result = graph_.result_index(graph_.outputs()[k]);
        if (result >= keys_ && !from) from = tiles_.choose("from", 0, shape_.length, position);
        points.store(
            k, in_row(row, place),
            result < keys_ ? keys[result] : element(points, result, in_row(row, *from), {}),
            guards);
      }
    };
    BlockSorter(tiles_, shape_, rows).sort();
    return finished();
  }

 private:
  ValueId operand(size_t i) const { return graph_.operands(node_)[i]; }
  Indices in_row(Indices row, const IndexExpr& at) const {
    row.insert(row.begin() + axis_, at);
    return row;
  }
  // In its own type.
  Scalar element(PointBuilder& points, size_t i, const Indices& at, const Guards& guards) {
    const DType dtype = graph_.type(operand(i)).dtype();
    const Scalar other = points.zero(wide_type(dtype));
    return tiles_.cast(points.at_or(operand(i), at, {}, guards, other), dtype);
  }

  const NodeId node_;
  const Op op_;
  const Type type_;
  const int64_t axis_;
  const size_t keys_;
  SortShape shape_;
};

}  // namespace

Result<TileProgram> build_block_sort(const KernelBody& body, const Schedule& schedule,
                                     std::string_view name) {
  return BlockSortBuilder(body, schedule, name).build();
}

}  // namespace hone
