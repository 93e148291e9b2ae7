#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/graph.h"

namespace hone {

// The first value of a graph, in its order, that has a NaN or an infinity, as the reference
// evaluates it in rounded mode: "%scores/y (add), element 3: inf". Constants do not count. None if
// all are finite.
Result<std::optional<std::string>> first_bad_value(const Graph& graph,
                                                   std::span<const Tensor> inputs);

}  // namespace hone
