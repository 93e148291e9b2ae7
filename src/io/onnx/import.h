#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/onnx/flow.h"
#include "io/onnx/frame.h"

// Turns the nodes of a graph into Values of a flow. All of this throws Failure.

namespace hone::onnx_io {

// Something in a region needs more than one segment.
struct NotARegion {};

// The initializers and nodes of a graph, whose inputs the frame has.
void import_graph(Frame& frame, Flow& flow, const onnx::GraphProto& graph);
void import_node(Frame& frame, Flow& flow, const onnx::NodeProto& node);
void import_initializers(Frame& frame, Flow& flow, const onnx::GraphProto& graph);

// The whole file.
Result<Model> import_model(std::shared_ptr<const ModelFile> file, const OnnxImport& options);

}  // namespace hone::onnx_io
