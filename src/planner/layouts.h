#pragma once

#include <map>
#include <string>

#include "plan/planned.h"
#include "planner/schedules.h"

namespace hone {

// Sets the layouts of values that may have any and that nobody decided, by price:
//   * weights of dot and conv so that lanes find neighbours side by side, without packing at run
//     time;
//   * what convs, and pools and pointwise kernels next to them, pass to each other: with channels
//     in blocks of a vector, or last. All of a region lie alike, or nothing changes; what reads a
//     region from outside is part of its price. Errors are those of the chooser.
Status choose_layouts(const Users& users, const std::map<std::string, Layout>& decided,
                      ScheduleChooser& chooser, PlannedGraph& frame);

}  // namespace hone
