#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shard/node_division.h"

// The division that a node gets by what is said of the values around it.

namespace hone {

// Operands as they are divided, absent ones without dims, and results as they are said to be.
struct NodeLayouts {
  std::vector<ShardLayout> operands = {};
  std::vector<ShardLayout> results = {};
};

// The price of what moves if a node is divided so: operands come, and results go where they are
// said to be.
using DivisionPrice = std::function<double(const NodeDivision& division)>;

// Results say first how factors are divided, or one of the operands does; then results, then
// operands. Each order gives a division. The one is taken that most devices share, then the one
// that exchanges least within the node, then the cheapest, then that by results. So the gradient of
// a weight, whose operands are divided along the batch, gathers them if they are small. Else each
// device has a summand, and a reduce_scatter of the sum divides it.
//
// None: the node has no form for such parts. `reason`: why some axes do not divide it.
std::optional<NodeDivision> stated_division(const NodeDivider& divider, const NodeLayouts& said,
                                            const DivisionPrice& price, std::string& reason);

// The division that these results state, to the letter, partial ones too; or what is nearest, and
// the reason.
std::optional<NodeDivision> exact_division(const NodeDivider& divider,
                                           const std::vector<ShardLayout>& results,
                                           std::string& reason);

}  // namespace hone
