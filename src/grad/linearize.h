#pragma once

#include "grad/changes.h"
#include "ir/builder.h"

// The first of three transformations (docs/derivatives.md). The new graph also computes how the
// outputs change when the inputs do.

namespace hone {

// Adds a tangent to the inputs in `inputs`, behind all inputs, and one to the outputs in `outputs`,
// behind all outputs. The tangents of outputs are linear functions of those of inputs; an output
// that does not change has zeros. Composites are spelled out where their derivative is. A while
// whose number of rounds has a known bound becomes a scan, which can be run backwards.
Result<Graph> linearize(const Graph& graph, const Mask& inputs, const Mask& outputs);

}  // namespace hone
