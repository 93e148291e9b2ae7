#pragma once

#include <map>
#include <optional>

#include "ir/graph.h"
#include "tensor/tensor.h"

namespace hone {

// A tensor whose elements are one number where a predicate of the same dims holds, and another
// number elsewhere.
struct TwoValued {
  ValueId predicate;
  Tensor on_true, on_false;  // scalars
};

// Finds values that nothing but a predicate decides, as masks of attention are. Asked in the order
// of the graph's nodes.
class TwoValuedResults {
 public:
  explicit TwoValuedResults(const Graph& graph) : graph_(graph) {}

  // The result of an elementwise node; none: more decides it, or the node computes otherwise.
  Result<std::optional<TwoValued>> of(NodeId n);

 private:
  std::optional<TwoValued> known(ValueId v) const;

  const Graph& graph_;
  std::map<ValueId, TwoValued> found_;
};

}  // namespace hone
