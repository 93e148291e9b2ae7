#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

// Rebuilds a graph node by node; every transformation uses it.
//
//   GraphCopy copy(graph);
//   for (NodeId n : graph.nodes()) HONE_TRY(copy.node(n));   // or replace(), or leave it out
//   return copy.finish();
//
// Names, outputs, donations and shardings follow the values. A sharding of a value that is left
// out, or has another rank, is dropped.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& source);

  const Graph& source() const { return source_; }
  Graph& target() { return target_; }

  // The value of the target that stands for `v`; none for none. HONE_CHECK: v was copied.
  ValueId operator()(ValueId v) const;
  std::vector<ValueId> operator()(std::span<const ValueId> values) const;

  // Copies the node with mapped operands; the second form with another op and regions.
  Result<NodeId> node(NodeId n);
  Result<NodeId> node(NodeId n, Op op, std::vector<GraphRef> regions);
  // Lets `replacement`, a value of the target of the same type, stand for `v`, and gives it the
  // name of `v` if it has none.
  void replace(ValueId v, ValueId replacement);
  // Appends `body` with its inputs bound to `arguments`; returns the values that its outputs
  // became.
  Result<std::vector<ValueId>> append(const Graph& body, std::span<const ValueId> arguments);

  Graph finish();

 private:
  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
};

// Applies `transform` to every region of the node; nodes without regions give none.
template <class Transform>
Result<std::vector<GraphRef>> transform_regions(const Graph& graph, NodeId n,
                                                const Transform& transform) {
  std::vector<GraphRef> regions;
  for (const GraphRef& region : graph.regions(n)) {
    Result<Graph> changed = transform(*region);
    if (!changed.ok()) return std::move(changed).error().within(graph.describe(n));
    regions.push_back(std::make_shared<Graph>(std::move(*changed)));
  }
  return regions;
}

}  // namespace hone
