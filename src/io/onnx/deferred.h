#pragma once

#include "io/onnx/import.h"

namespace hone::onnx_io {

// Ends the model before the node `first` of the graph, which cannot be typed while sizes are
// symbols: what follows is imported when it is known what they are. `why` is thrown again if no
// sizes would help. Defines the graph's outputs.
void defer_rest(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first, Failure why);

}  // namespace hone::onnx_io
