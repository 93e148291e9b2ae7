#pragma once

#include <vector>

#include "ir/graph.h"
#include "planner/heuristics.h"

namespace hone {

// The decisions about nodes and values that are still open.
struct FusionFreedom {
  std::vector<bool> is_free;      // by node: in no group yet, no view, no command
  std::vector<bool> may_be_view;  // by node, as far as check_view() allows it
  std::vector<bool> has_memory;   // by value: somebody decided where or how it lies
  int64_t block = 1;              // the channels of a block of an image
};

struct Fusion {
  std::vector<std::vector<NodeId>> groups;  // nodes in the graph's order; by their last nodes
  std::vector<NodeId> views;
  size_t counted = 0;  // nodes, each time that a group was counted with it: what fuse() takes
};

// Groups of all free nodes. A node joins the group of its readers if all are in one, so no two
// groups can wait for each other, and if little is computed again:
//   * elementwise ops and data movement join anything that does not need their elements more than
//     twice;
//   * a sum or maximum along rows joins what uses it in the same rows: softmax, norms;
//   * a contraction takes an epilogue of elementwise ops, and data movement of its operands.
// Reshapes and the like at the edge of a group are views, and so are concats of images that lie
// side by side with their channels in blocks, too. All others are computed. It takes time in
// proportion to the graph.
Fusion fuse(const Graph& graph, const Users& users, const FusionFreedom& freedom,
            const Heuristics& heuristics);

}  // namespace hone
