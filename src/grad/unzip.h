#pragma once

#include <cstdint>
#include <vector>

#include "grad/changes.h"
#include "ir/graph.h"

// The second transformation (docs/derivatives.md): it cuts a graph with tangents into two. The
// first part computes the values. The second one is linear: it computes the tangents of outputs
// from those of inputs and from values that the first part hands over.

namespace hone {

struct Unzipped {
  // From the inputs that are no tangents: the outputs that are no tangents, then what is stored.
  Graph primal;
  // From the passed inputs, what is stored, and the tangents: the tangents of the outputs.
  Graph linear;
  std::vector<uint32_t> passed;  // inputs of the graph that the linear part reads itself
  size_t stored = 0;
};

// The masks say which inputs and outputs are tangents. Inputs in `can_pass` may be read by both
// parts; other values that the linear part reads are stored. Values that are cheap to make again
// are not stored: broadcasts, reshapes, and elementwise values that no input decides.
Result<Unzipped> unzip(const Graph& graph, const Mask& inputs, const Mask& outputs,
                       const Mask& can_pass);

}  // namespace hone
