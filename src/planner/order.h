#pragma once

#include "plan/planned.h"

namespace hone {

// The choice among the steps that could come next.
enum class NextStep : uint8_t {
  first,   // the one that the model has first
  newest,  // one that waited for the step before, else for the one before that, ...: what it reads
           // was written last. Steps that exchange data keep the model's order.
};

// All steps, each behind what it reads and those that the graph's order has in the order that they
// have there. Steps that wait for each other are missing.
std::vector<uint32_t> order_steps(const PlannedGraph& graph, NextStep next = NextStep::first);

}  // namespace hone
