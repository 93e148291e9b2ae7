#pragma once

#include <optional>

#include "planner/fusion.h"
#include "planner/schedules.h"

namespace hone {

// The cheapest of a few legal chains of a body; none, if no chain is legal.
Result<std::optional<PricedSchedule>> cheapest_chain(std::shared_ptr<const KernelFacts> facts,
                                                     ScheduleChooser& chooser);

bool is_conv_with_pool(const Graph& graph);

// Joins kernels with the only kernel that reads them where one chain costs less than both:
// attention, cells of recurrent nets. Those of convs stay, as their layouts, which come later,
// matter more. Whether some were joined.
Result<bool> join_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price);

// The same of images, which have their layouts: a depthwise conv with the 1x1 conv that reads it.
// What they pass on stays in a cache, a few rows at a time.
Result<bool> join_image_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price);

// A conv with the pool that reads it.
Result<bool> join_pool_chains(FrameEditor& frame, const FusionFreedom& freedom, PlanCost& price);

}  // namespace hone
