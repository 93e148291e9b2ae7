#pragma once

#include <cstdint>

#include "grad/changes.h"
#include "ir/graph.h"

namespace hone {

// Adds gradients of output `loss`, a real scalar, to a graph: one for each input in `inputs`, after
// the outputs. It runs linearize, unzip and transpose, one after the other. The gradient of %x is
// called "x.grad". An error says so if the loss depends on one of the inputs, but only through
// something without a derivative. If it does not depend on it at all, the gradient is zero.
Result<Graph> grad(const Graph& graph, uint32_t loss, const Mask& inputs);

}  // namespace hone
