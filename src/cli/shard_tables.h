#pragma once

#include <string>

#include "report/sharding_picture.h"
#include "session/sharding.h"
#include "shard/partition.h"
#include "shard/propagate.h"
#include "target/system.h"

// Tables about a model whose values devices divide.

namespace hone::cli {

// Who holds what.
std::string sharding_values_text(const ShardingPicture& picture);
// Each exchange of devices, and the node that it is for.
std::string sharding_messages_text(const ShardingPicture& picture);
// The nodes that no axis divides although one could.
std::string sharding_losses_text(const Partition& partition);
// The divisions that do not fit together, with the least that moves between devices for each, and
// how long that takes on the system.
Result<std::string> sharding_conflicts_text(const Propagation& propagation, const System& system);
// The same among what is stated of values, where prices choose the rest.
Result<std::string> stated_conflicts_text(const Graph& graph, const MeshRef& mesh,
                                          const ShardRequest& request, const System& system);

}  // namespace hone::cli
