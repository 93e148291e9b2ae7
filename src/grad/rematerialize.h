#pragma once

#include <cstdint>
#include <span>

#include "ir/graph.h"

// Values that the way back reads are stored in between, or computed again by the same ops after a
// barrier. docs/derivatives.md has an example.

namespace hone {

// The values that are stored. Everything else that the way back reads is computed again, from what
// is stored and the inputs, just before it is read.
struct Storage {
  // Values that elementwise ops, data movement and sums make of stored ones are computed again.
  bool leaves_out_cheap = false;
  // The first `share` of the way to the loss, by what it stores, is cut into `parts` that store
  // equally much; of these, only what later parts read is stored. Fewer parts than there are places
  // to cut: fewer.
  double share = 0;  // below 1
  size_t parts = 1;

  bool operator==(const Storage&) const = default;
};
inline constexpr Storage kStoreAll = {};

struct Rematerialized {
  Graph graph = Graph();
  size_t nodes = 0;  // computed again
  double flops = 0;  // of these nodes
  double bytes = 0;  // that they read and write, if each is a kernel of its own
};

// The graph that stores less. `forward` are the outputs of the function. The nodes up to the last
// of them compute the loss; the nodes after it compute the way back. The graphs of grad() and steps
// made of them are like this. Nodes with effects are not repeated. A graph with open sizes is
// refused: nobody knows how much it stores.
Result<Rematerialized> rematerialize(const Graph& graph, std::span<const uint32_t> forward,
                                     const Storage& storage);

}  // namespace hone
