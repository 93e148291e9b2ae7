#pragma once

#include <optional>

#include "cli/arguments.h"
#include "place/judge.h"
#include "search/placed_graph.h"

// The timeline of a plan that places kernels on devices, for people.

namespace hone::cli {

class Console;

// PLAN of `hone explain`, if it is a file that says who computes what.
Result<std::optional<DevicePlan>> explained_device_plan(const Arguments& arguments);
// Devices over time, what links carry, and why kernels are where they are; --trace writes the
// timeline.
Status tell_placement(const DevicePlan& plan, const Graph& graph, const Arguments& arguments,
                      Console& console);

// The problem without pins: a plan pins what it places, and the question is what moving that costs.
PlaceProblem without_pins(PlaceProblem problem);

// The drawing of --plot, if it is given.
Status write_placement_plot(const PlaceJudge& judge, const PlaceTimeline& timeline,
                            const Arguments& arguments, Console& console);

}  // namespace hone::cli
