#pragma once

#include <cstdint>

#include "grad/changes.h"
#include "ir/graph.h"

namespace hone {

// The graph with a gradient of output `loss`, a real scalar, for each input in `inputs`, behind the
// outputs: linearize, unzip and transpose, one after the other. The gradient of %x is called
// "x.grad". An error says so if the loss depends on one of the inputs, but only through something
// without a derivative. If it does not depend on it at all, the gradient is zero.
Result<Graph> grad(const Graph& graph, uint32_t loss, const Mask& inputs);

}  // namespace hone
