#pragma once

#include <vector>

#include "program/device_programs.h"
#include "shard/cut.h"

namespace hone {

// The programs of all devices of a cut graph. `pieces` are the programs of its pieces, in their
// order. Each device begins all its receives, computes its pieces one after another, and sends what
// others need as soon as the piece that makes it is done. Message i of the cut has tag i. Inputs
// and outputs of a device are those of the graph that it needs and has, in the graph's order. The
// programs are verified.
Result<DevicePrograms> join_pieces(const Graph& graph, const GraphCut& cut,
                                   const std::vector<Program>& pieces);

}  // namespace hone
