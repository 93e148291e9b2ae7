#pragma once

#include "plan/planned.h"

namespace hone {

// The choice among the steps that could come next.
enum class NextStep : uint8_t {
  first,   // the one that the model has first
  newest,  // one that waited for the step before, else for the one before that, ...: what it reads
           // was written last. Steps that exchange data keep the order of `first`.
};

// All steps, each behind what it reads and those that the graph's order has in the order that they
// have there. Steps that wait for each other are missing.
std::vector<uint32_t> order_steps(const PlannedGraph& graph, NextStep next = NextStep::first);

// True if the choice of NextStep makes a difference to the plan's steps, or to those of a region.
// The plan's own order does not count.
bool has_other_order(const Graph& graph, Plan plan);

}  // namespace hone
