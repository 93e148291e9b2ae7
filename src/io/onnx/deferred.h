#pragma once

#include <set>
#include <string>

#include "io/onnx/import.h"

namespace hone::onnx_io {

// What nodes from `first` on, those in subgraphs too, and the outputs read.
std::set<std::string> names_read(const onnx::GraphProto& graph, int first = 0);

// Ends the model before the node `first` of the graph, which cannot be typed while sizes are
// symbols: what follows is imported when it is known what they are. `why` is thrown again if no
// sizes would help. Defines the graph's outputs.
void defer_rest(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first, Failure why);

}  // namespace hone::onnx_io
