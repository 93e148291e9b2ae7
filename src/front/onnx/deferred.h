#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "front/onnx/import.h"

namespace hone::onnx_io {

// The names that all nodes, also those in subgraphs, and the outputs read.
std::set<std::string> names_read(const onnx::GraphProto& graph);

// The nodes of a file from one on, as a deferred segment keeps them.
class FileRest : public SegmentSource {
 public:
  struct Nodes {
    std::shared_ptr<const Source> source;
    const Frame::Opsets& opsets;
    const onnx::GraphProto& graph;
    const std::vector<int>& indices;  // of the nodes, in order
    // The names of the segment's inputs in the file; "" for one that is there for its size alone.
    std::vector<std::string> inputs;
    std::vector<std::string> results;
    std::vector<std::pair<std::string, Tensor>> constants;  // that the nodes see, too
  };
  virtual Nodes nodes() const = 0;  // refers to this
};

// True if tensors are all that they read: sequences stay in the segment that made them.
bool can_defer(Frame& frame, const onnx::GraphProto& graph, int first);

// Ends the model before the node `first` of the graph, which cannot be typed while sizes are
// symbols. The rest is imported when it is known what they are, and so are nodes before that
// compute from sizes what it reads. `why` is thrown again if no sizes would help. Defines the
// graph's outputs.
void defer_rest(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first, Failure why);
// The same for a whole graph that no sizes are known to fit; `what` names it in messages. Its
// outputs have the element types and ranks of the given types if the graph is reached; returns the
// types that they have until then. If no size is open the graph fails for sure, and they are the
// given ones.
std::vector<Type> defer_all(Frame& frame, Flow& flow, const onnx::GraphProto& graph,
                            const std::vector<Type>& types, std::string what);

}  // namespace hone::onnx_io
