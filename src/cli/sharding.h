#pragma once

#include "cli/arguments.h"
#include "session/sharding.h"

// --mesh, --shard, --system, --memory, --budget and --seed of commands that divide the values of a
// model.

namespace hone::cli {

class Console;

// True if the command line says that values are divided.
bool names_sharding(const Arguments& arguments);
// Errors: words about the search for a sharding where values are not divided.
Status check_mesh_search(const Arguments& arguments);
Result<ShardRequest> given_shards(const Arguments& arguments);
Result<AutoShardOptions> auto_shard_options(const Arguments& arguments, Console& console);
// The system of --system, or else parts of this machine, as many as the mesh has devices.
Result<System> system_for_mesh(const Mesh& mesh, const Arguments& arguments);
// The prices that hone knows of its targets.
std::vector<std::shared_ptr<const Cost>> costs_of(const System& system, Console& console);

// A line such as "sum of the parts 1.3 ms, bound 1.3 ms, gap 0.00 %: 12 options of 3 nodes, ...".
// The search has no bound if it leaves options out. The line then says how many it compared:
// "sum of the parts 1.3 ms: 384 of 1875 options ...".
std::string search_text(const AutoSharding& chosen);

}  // namespace hone::cli
