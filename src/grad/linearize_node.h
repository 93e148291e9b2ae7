#pragma once

#include <span>
#include <vector>

#include "ir/builder.h"

// Nodes with regions, seen by linearize().

namespace hone {

// Absent tangents: the value does not change.
struct WithTangents {
  std::vector<Value> values;
  std::vector<Value> tangents;
};

// An if, while or scan whose operands are `operands`, and the tangents of its results.
Result<WithTangents> linearized_control(Builder& b, const Graph& graph, NodeId node,
                                        const WithTangents& operands);

}  // namespace hone
