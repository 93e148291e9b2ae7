#pragma once

#include <string>

#include "shard/partition.h"
#include "shard/propagate.h"

// Tables about a model whose values devices divide.

namespace hone::cli {

// Who holds what: inputs, constants and outputs, or all values.
std::string sharding_values_text(const Graph& graph, bool all);
// Each exchange of devices, and the node that it is for.
std::string sharding_messages_text(const Partition& partition);
// The nodes that no axis divides although one could, and the divisions that do not fit together.
std::string sharding_losses_text(const Propagation& propagation, const Partition& partition);

}  // namespace hone::cli
