#pragma once

#include <string>
#include <string_view>

#include "cost/system_timeline.h"
#include "report/timeline_trace.h"
#include "search/system_plan.h"

// Where the time goes on the devices of a System, for people.

namespace hone {

// Tables of where the time goes: on the longest chain of jobs, on each device, on each link, and by
// collective. At most `most` rows each.
std::string explanation_text(const System& system, const SystemTimeline& timeline,
                             std::string_view model, size_t most);

// A table of the products that could be divided into steps, each alone before and after. Empty:
// there are none.
std::string overlaps_text(const SystemPlans& plans, size_t most);

// The names of the jobs, for add_timeline().
TimelineNames names_of(const SystemTimeline& timeline);

}  // namespace hone
