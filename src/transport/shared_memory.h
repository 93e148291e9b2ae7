#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "transport/streams.h"

// Processes of one host that share memory: a ring of bytes for each ordered pair. They find each
// other by a name, and their version of the transport and their group must agree.

namespace hone {

// Returns when all processes of the group are there. The name has letters, digits, - and _ and is
// used by one group at a time; it is free again when all have joined. Memory that a killed group
// has left behind is taken away. Only processes of the same user can join. Error: the group is not
// whole in time, or one of its processes differs.
Result<std::unique_ptr<Transport>> join_shared_memory(std::string_view name,
                                                      const ProcessGroup& group,
                                                      const StreamOptions& options = {});

}  // namespace hone
