#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

// The graph as a Graphviz drawing: a box per node, an edge per use with its type; regions are
// frames. Constants are drawn only where they are large, as they crowd the picture otherwise.
std::string graphviz(const Graph& graph);

}  // namespace hone
