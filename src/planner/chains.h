#pragma once

#include <optional>

#include "planner/fusion.h"
#include "planner/schedules.h"

namespace hone {

// The cheapest of a few legal chains of a body; none, if no chain is legal.
Result<std::optional<PricedSchedule>> cheapest_chain(std::shared_ptr<const KernelFacts> facts,
                                                     ScheduleChooser& chooser);

// Joins groups with the only group that reads them where one chain costs less than both: attention,
// cells of recurrent nets. Those of convs stay, as their layouts, which come later, matter more.
Status join_chains(const Graph& graph, const Users& users, const FusionFreedom& freedom,
                   ScheduleChooser& chooser, Fusion& fusion);

}  // namespace hone
