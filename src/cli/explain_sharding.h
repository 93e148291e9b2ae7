#pragma once

#include "cli/arguments.h"
#include "report/sharding_picture.h"
#include "session/sharding.h"

// 'hone explain' and 'hone report' with --mesh and --shard: who holds what, what moves and why, and
// what else it might cost.

namespace hone::cli {

class Console;

// The devices, and the program that each of them runs.
struct ToldSharding {
  System system;
  Partition partition;
};
Result<ToldSharding> tell_sharding(const Graph& graph, const Arguments& arguments,
                                   Console& console);

// The same for a page, which nothing is printed for.
struct DrawnSharding {
  System system;
  ShardingPicture picture;
  SystemPlans plans;
};
Result<DrawnSharding> draw_sharding(const Graph& graph, const Arguments& arguments,
                                    Console& console);

}  // namespace hone::cli
