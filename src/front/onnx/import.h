#pragma once

#include <memory>
#include <string>
#include <vector>

#include "front/onnx/flow.h"
#include "front/onnx/frame.h"

// Turns the nodes of a graph into Values of a flow. All of this throws Failure.

namespace hone::onnx_io {

// Something in a region needs more than one segment, or cannot be typed in it.
struct NotARegion {
  Error why = unsupported("sizes of a subgraph depend on data");
};

// The initializers and nodes of a graph, whose inputs the frame has.
void import_graph(Frame& frame, Flow& flow, const onnx::GraphProto& graph);
void import_node(Frame& frame, Flow& flow, const onnx::NodeProto& node);
// The nodes of a graph from `first` on, as far as they can be typed; the rest is deferred.
// Afterwards the frame has the graph's outputs, unless the flow has constraints. A rest that was
// deferred before does not stop at its first node again unless it has learned something.
void import_nodes(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first = 0,
                  bool is_rest = false);
void import_initializers(Frame& frame, Flow& flow, const onnx::GraphProto& graph);

// The whole file.
Result<Model> import_model(std::shared_ptr<const ModelFile> file, const ImportOptions& options);

}  // namespace hone::onnx_io
