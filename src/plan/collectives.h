#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/rng.h"
#include "ir/graph.h"
#include "ir/text_parser.h"
#include "transport/spmd.h"

// Collectives of a graph, which all devices run, and the schedules that a plan may give them.

namespace hone {

// True if a device that runs the op exchanges data with others. A group of one device, and a
// permute of device 0 with itself, exchange nothing.
bool exchanges_data(Op op);
// True if an op of the graph or of its regions does.
bool exchanges_data(const Graph& graph);
// True if it does, or if devices compute different values of equal inputs without an exchange, as
// by device_index: the graph is for several devices.
bool knows_devices(const Graph& graph);

// The collective of an op that exchanges data, by the default schedule.
SpmdCollective spmd_of(Op op);
// A few messages of many bytes for small values, many messages of few bytes for large ones.
CollectiveSchedule default_schedule(Op op, int64_t bytes);
CollectiveSchedule random_schedule(Op op, Rng& rng);
Status check_schedule(Op op, const CollectiveSchedule& schedule);

// How many devices a graph is for: the least number, and whether a number fits. Errors name the
// node.
Result<int32_t> least_devices(const Graph& graph);
Status check_devices(const Graph& graph, int32_t devices);

// "ring, 4 pieces", "hierarchical of 4".
Result<CollectiveSchedule> parse_collective_schedule(TextParser& text);

}  // namespace hone
