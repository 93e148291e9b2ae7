#pragma once

#include <optional>

#include "ir/graph_copy.h"

namespace hone {

// A gather at places that are known, and that follow each other at equal distances, takes a part:
// appends that part. None for other gathers.
Result<std::optional<ValueId>> part_taken_by_gather(GraphCopy& copy, NodeId gather);

}  // namespace hone
