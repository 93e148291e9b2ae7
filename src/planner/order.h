#pragma once

#include "plan/planned.h"

namespace hone {

// All steps, each behind what it reads and those that the graph's order has in the order that they
// have there. Among those that could come next it takes the one that the model has first.
// Steps that wait for each other are missing.
std::vector<uint32_t> order_steps(const PlannedGraph& graph);

}  // namespace hone
