#pragma once

#include <span>
#include <vector>

#include "ir/builder.h"

// The three transformations share these about regions.

namespace hone {

// The graph with its inputs and outputs in another order: input i is its input inputs[i]. Outputs
// may be left out.
Result<GraphRef> reordered(const Graph& graph, std::span<const size_t> inputs,
                           std::span<const size_t> outputs);

// A while as a scan of as many rounds as it makes at most. Its operands stay the same.
struct LoopAsScan {
  Op op;
  GraphRef body;
};
// Null: no bound is known. A bound is known if a state counts, from a known number, by a constant,
// to a number that the condition compares it with.
Result<std::optional<LoopAsScan>> as_scan(const Graph& graph, NodeId node);

}  // namespace hone
