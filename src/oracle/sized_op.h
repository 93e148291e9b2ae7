#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/op_def.h"

namespace hone {

// The types of a node's operands (null for absent ones) and results.
struct NodeTypes {
  std::vector<Type> operands;
  std::vector<Type> results;
  bool operator==(const NodeTypes&) const = default;
};

// The op for operands and results of other sizes: attributes that state sizes and places follow
// the dims that they are about. nullopt: it would give other results. `steps`: of a scan.
std::optional<Op> sized_op(Op op, const NodeTypes& before, const NodeTypes& behind,
                           std::span<const Graph* const> regions, int64_t steps);

}  // namespace hone
