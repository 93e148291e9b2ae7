#pragma once

#include "grad/changes.h"
#include "ir/graph.h"

// The third transformation (docs/derivatives.md): runs a linear graph backwards.

namespace hone {

// Transposes a graph whose outputs in `outputs` are linear functions of its inputs in `inputs`. The
// result takes the other inputs and a cotangent for each of those outputs. It gives a cotangent for
// each of those inputs. An input that nothing comes back to has zeros.
Result<Graph> transpose(const Graph& graph, const Mask& inputs, const Mask& outputs);

}  // namespace hone
