#pragma once

#include "cli/arguments.h"
#include "session/sharding.h"

// 'hone explain --mesh --shard': who holds what, what moves and why, and what else it might cost.

namespace hone::cli {

class Console;

// The devices, and the program that each of them runs.
struct ToldSharding {
  System system;
  Partition partition;
};
Result<ToldSharding> tell_sharding(const Graph& graph, const Arguments& arguments,
                                   Console& console);

}  // namespace hone::cli
