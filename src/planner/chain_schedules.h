#pragma once

#include <optional>

#include "planner/schedules.h"

namespace hone {

// The cheapest of a few legal chains of a body, by this price; none, if no chain is legal. Without
// the switch for schedules it is the simplest chain.
Result<std::optional<PricedSchedule>> cheapest_chain(
    const std::shared_ptr<const KernelFacts>& facts, PricedKernel& price, ScheduleChooser& chooser);

// Such a body is computed as a chain: in a nest, the conv has no register tiles.
bool is_conv_with_pool(const Graph& graph);

}  // namespace hone
