#pragma once

#include <pybind11/pybind11.h>

#include "ir/graph.h"
#include "session/sharding.h"

namespace hone::python {

// A graph as Python has it.
struct PyGraph {
  GraphRef graph;
};

// The words by which a mesh and what it divides are said in Python.
inline constexpr ShardLabels kShardLabels = {.mesh = "mesh", .shard = "shard"};

// Registers Graph, Builder, Value, apply() and ops().
void define_graph(pybind11::module_& module);

}  // namespace hone::python
