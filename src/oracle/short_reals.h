#pragma once

#include "ir/graph.h"

// Reals of 16 bits and fewer. Native code rounds those of 16 bits where a kernel stores them, the
// reference after each op or not at all.

namespace hone {

bool has_short_reals(const Graph& graph);  // in regions, too

// Takes number by number, from two ways to compute an output, the one that is nearer to `actual`.
// They have its dims.
Tensor nearer(const Tensor& actual, const Tensor& a, const Tensor& b);

}  // namespace hone
