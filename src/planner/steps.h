#pragma once

#include "planner/frame.h"

// The steps of the planner (docs/planner.md), in their order. A step decides what the plan leaves
// open; the heuristic of its name leaves it out. Errors are those of the chooser.

namespace hone {

// groups.cc: which nodes are one kernel, and which are views.
Status form_groups(PlanningFrame& frame);
// chains.cc: kernels join the only kernel that reads them, as stages of a chain.
Status join_chains(PlanningFrame& frame);
// packed_weights.cc, a part of the same step: weights of a few bits join the product that alone
// reads them. Tells whether some did.
Result<bool> join_packed_weights(PlanningFrame& frame, PlanCost& price);
// layouts.cc: updates in place, then how values lie in memory, and copies of weights.
Status choose_layouts(PlanningFrame& frame);
// image_chains.cc: convs join the kernel that alone reads their images.
Status join_image_chains(PlanningFrame& frame);
// schedules.cc: how each distinct kernel is computed.
Status choose_schedules(PlanningFrame& frame);
// memory.cc: the order of the steps, and the place of each temporary.
Status place_values(PlanningFrame& frame);

}  // namespace hone
