#pragma once

#include "front/onnx/proto.h"

namespace hone::onnx_io {

// Puts the nodes of all graphs and functions of a file into an order in which each value is given
// before it is read. The standard demands such an order, but some tools do not write it. Nodes in
// order stay where they are, and so do all nodes of a graph with a cycle, which is an error where
// it is read.
void sort_nodes(onnx::ModelProto& model);

}  // namespace hone::onnx_io
