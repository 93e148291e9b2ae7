#pragma once

#include "cli/arguments.h"
#include "ir/graph.h"
#include "target/system.h"

// --devices, --device and --batch of commands that predict how long a model takes.

namespace hone::cli {

class Console;

bool names_devices(const Arguments& arguments);

// A system, and the graph that each of its devices runs.
struct Division {
  System system;
  Graph graph;
};

// The devices that the command line says: those of --system, or else parts of this machine. They
// divide the batch of the graph, and the graph is that of the device with the most rows; the user
// is told how many. One with collectives stays as it is.
Result<Division> given_division(const Graph& graph, const Arguments& arguments, Console& console);

}  // namespace hone::cli
