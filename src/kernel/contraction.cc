#include "kernel/contraction.h"

#include <algorithm>

#include "ir/op_def.h"

namespace hone {

namespace {

using Index = std::vector<IndexExpr>;

Index composed(const std::vector<IndexExpr>& access, const Index& iters) {
  Index index;
  for (const IndexExpr& expr : access) index.push_back(expr.substitute(iters));
  return index;
}

// Follows the anchor's value from the results to where it is made.
class AnchorSearch {
 public:
  AnchorSearch(const Graph& graph, NodeId anchor)
      : graph_(graph), anchor_(anchor), indices_(graph.value_count()), needs_(graph.node_count()) {
    for (NodeId node : graph.nodes()) {
      needs_[node.index] = node == anchor;
      for (ValueId operand : graph.operands(node))
        if (!operand.is_none() && needs_[graph.producer(operand).index]) needs_[node.index] = true;
    }
  }

  Result<Index> run() {
    for (ValueId output : graph_.outputs())
      if (needs_[graph_.producer(output).index])
        HONE_TRY(need(output, identity_index(graph_.type(output).rank())));
    for (auto node = static_cast<uint32_t>(graph_.node_count()); node-- > anchor_.index + 1;)
      if (needs_[node]) HONE_TRY(visit(NodeId{node}));
    const std::optional<Index>& index = indices_[graph_.result(anchor_).index];
    if (!index) return unsupported("no result needs the contraction");
    return *index;
  }

 private:
  Status need(ValueId value, Index index) {
    std::optional<Index>& known = indices_[value.index];
    if (known && *known != index)
      return unsupported("{} is needed at two places for one point", graph_.label(value));
    known = std::move(index);
    return {};
  }

  Status visit(NodeId node) {
    const std::optional<Index>& index = indices_[graph_.result(node).index];
    if (!index) return {};
    const std::vector<Type> operands = graph_.operand_types(node);
    const AccessRelation relation =
        access_of({graph_.op(node), operands}, graph_.result_types(node));
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId operand = graph_.operands(node)[i];
      if (operand.is_none() || !needs_[graph_.producer(operand).index]) continue;
      for (const Access& access : relation.operands[i]) {
        for (int d = 0; d < operands[i].rank(); ++d)
          if (access.is_data_dependent(d))
            return unsupported("{} finds elements of the contraction by data",
                               graph_.describe(node));
        if (relation.operands[i].size() > 1 || !access.guards.empty())
          return unsupported("{} needs the contraction at some points only", graph_.describe(node));
        HONE_TRY(need(operand, composed(access.index, *index)));
      }
    }
    return {};
  }

  const Graph& graph_;
  const NodeId anchor_;
  std::vector<std::optional<Index>> indices_;  // per value
  std::vector<bool> needs_;                    // per node: depends on the anchor
};

Status check_sizes(const KernelSpace& space) {
  for (const IterDim& dim : space.dims) {
    if (!dim.extent.is_static())
      return unsupported("gemm needs sizes that are numbers, not {}", dim.extent.to_string());
    if (dim.extent.is(0)) return unsupported("gemm has no blocks of dims without elements");
  }
  return {};
}

}  // namespace

Result<Contraction> contraction_of(const KernelBody& body, const KernelSpace& space) {
  const Graph& graph = body.graph;
  if (!space.has_anchor()) return unsupported("gemm is for bodies with one contraction");
  const NodeId anchor = space.anchor;
  if (graph.opcode(anchor) != Opcode::dot && graph.opcode(anchor) != Opcode::conv)
    return unsupported("gemm is for dot and conv, not for {}", graph.describe(anchor));
  HONE_TRY(check_sizes(space));
  Contraction contraction;
  contraction.index = HONE_TRY(AnchorSearch(graph, anchor).run());
  const std::vector<Type> operands = graph.operand_types(anchor);
  const AccessRelation relation =
      access_of({graph.op(anchor), operands}, graph.result_types(anchor));
  Index iters = contraction.index;
  for (int d = space.parallel; d < static_cast<int>(space.dims.size()); ++d)
    iters.push_back(IndexExpr::iter(d));
  for (size_t side = 0; side < 2; ++side) {
    const Access& access = relation.operands[side].at(0);
    const Index& index = contraction.reads[side] = composed(access.index, iters);
    for (const Guard& guard : access.guards) {
      const auto dim = std::ranges::find(access.index, guard.value);
      if (dim == access.index.end() || guard.lower != 0 ||
          guard.upper != operands[side].dim(static_cast<int>(dim - access.index.begin())))
        contraction.has_holes[side] = true;
    }
    for (int d = 0; d < space.parallel; ++d)
      contraction.sides[side].push_back(
          std::ranges::any_of(index, [&](const IndexExpr& expr) { return expr.mentions(d); }));
  }
  for (size_t d = 0; d < static_cast<size_t>(space.parallel); ++d)
    if (!contraction.sides[0][d] && !contraction.sides[1][d] && !space.dims[d].extent.is(1))
      return unsupported("points along dim {} share one sum", d);
  return contraction;
}

// ---- Blocks -------------------------------------------------------------------------------------

int64_t tile_of(const std::vector<Tile>& tiles, int dim) {
  const auto tile = std::ranges::find(tiles, dim, &Tile::dim);
  return tile == tiles.end() ? 1 : tile->count;
}

int64_t register_tile(const Schedule& schedule, int dim) {
  return tile_of(schedule.unroll, dim) * tile_of(schedule.lanes, dim);
}

int64_t cache_block(const Schedule& schedule, const KernelSpace& space, int dim) {
  const int64_t extent = space.dims[static_cast<size_t>(dim)].extent.value();
  const auto block = std::ranges::find(schedule.block, dim, &Tile::dim);
  const bool is_named = block != schedule.block.end();
  if (dim >= space.parallel) return is_named ? std::min(block->count, extent) : extent;
  const int64_t tile = register_tile(schedule, dim);
  const int64_t most = (extent + tile - 1) / tile * tile;
  return is_named ? std::min(block->count, most) : tile;
}

BlockShape block_shape(const Schedule& schedule, const KernelSpace& space,
                       const std::vector<bool>& dims) {
  BlockShape shape;
  for (int d = 0; d < space.parallel; ++d) {
    if (!dims[static_cast<size_t>(d)]) continue;
    const int64_t tile = register_tile(schedule, d);
    shape.tiles *= cache_block(schedule, space, d) / tile;
    shape.points *= tile;
  }
  return shape;
}

int64_t block_depth(const Schedule& schedule, const KernelSpace& space) {
  int64_t depth = 1;
  for (int d = space.parallel; d < static_cast<int>(space.dims.size()); ++d)
    depth *= cache_block(schedule, space, d);
  return depth;
}

Result<std::vector<int64_t>> window_of(const Contraction& contraction, const KernelSpace& space,
                                       const Schedule& schedule, size_t side) {
  if (contraction.has_holes[side]) return unsupported("a window of an operand with holes");
  std::vector<int64_t> extents;
  for (const IndexExpr& expr : contraction.reads[side]) {
    int64_t extent = 1;
    for (int d = 0; d < static_cast<int>(space.dims.size()); ++d) {
      const std::optional<int64_t> step = expr.coefficient(d);
      if (!step || *step < 0) return unsupported("a window of an operand that is taken in jumps");
      extent += *step * (cache_block(schedule, space, d) - 1);
    }
    extents.push_back(extent);
  }
  return extents;
}

bool blocks_reduction(const Schedule& schedule, const KernelSpace& space) {
  return std::ranges::any_of(schedule.block, [&](const Tile& block) {
    return block.dim >= space.parallel &&
           cache_block(schedule, space, block.dim) <
               space.dims[static_cast<size_t>(block.dim)].extent.value();
  });
}

}  // namespace hone
