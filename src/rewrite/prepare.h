#pragma once

#include "ir/graph.h"

namespace hone {

// The graph that plans are for: composites spelled out (those of 16-bit reals in f32), constants
// folded, those that a region is always given in the region, nothing dead, nothing twice, and every
// value with a name, in regions too. Values that have a name keep it; others are called after the
// first named value that is computed from them and their op: "ln1.sub", "ln1.mul_2". Small
// constants of equal elements are broadcasts of one element, which kernels have in their code. Each
// reader of a broadcast has its own. Bodies of loops may store each new state where the old one is.
// Preparing twice changes nothing but names of such elements.
Result<Graph> prepare(const Graph& graph);

}  // namespace hone
