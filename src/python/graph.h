#pragma once

#include <pybind11/pybind11.h>

#include "ir/graph.h"

namespace hone::python {

// A graph as Python has it.
struct PyGraph {
  GraphRef graph;
};

// Registers Graph, Builder, Value, apply() and ops().
void define_graph(pybind11::module_& module);

}  // namespace hone::python
