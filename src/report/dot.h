#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

// The graph as a Graphviz drawing: a box per node, an edge per use with its type, a border around
// each region. Small constants are left out, as they crowd the picture.
std::string graphviz(const Graph& graph);

}  // namespace hone
