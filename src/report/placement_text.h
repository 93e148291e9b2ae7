#pragma once

#include <string>

#include "place/judge.h"
#include "report/timeline_trace.h"

// A placement for people: what devices and links do, and why nodes are where they are.

namespace hone {

// Tables of at most `most` rows each: devices with their time and memory, and links with what they
// carry. A third table has the longest nodes, with their price and the goal's change on each
// device. The placement fits, and the timeline is its own.
std::string placement_text(const PlaceJudge& judge, const DevicePlacement& placement,
                           const PlaceTimeline& timeline, PlaceGoal goal, size_t most);

// For add_timeline().
TimelineNames names_of(const PlaceTimeline& timeline);

// A drawing as SVG: a track of each device with its nodes over time, the memory of each device over
// time, and a track of each link that is used. The longest jobs are drawn, if there are thousands.
std::string plot_placement(const PlaceJudge& judge, const PlaceTimeline& timeline);

}  // namespace hone
