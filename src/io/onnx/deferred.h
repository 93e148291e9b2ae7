#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/onnx/import.h"

namespace hone::onnx_io {

// What nodes from `first` on, those in subgraphs too, and the outputs read.
std::set<std::string> names_read(const onnx::GraphProto& graph, int first = 0);

// The nodes of a file from one on, as a deferred segment keeps them.
class FileRest : public SegmentSource {
 public:
  struct Nodes {
    std::shared_ptr<const Source> source;
    const Frame::Opsets& opsets;
    const onnx::GraphProto& graph;
    int first;
    // What the file calls the segment's inputs; "" for one that is there for its size alone.
    std::vector<std::string> inputs;
    std::vector<std::string> results;
    std::vector<std::pair<std::string, Tensor>> constants;  // that the nodes see, too
  };
  virtual Nodes nodes() const = 0;  // refers to this
};

// Ends the model before the node `first` of the graph, which cannot be typed while sizes are
// symbols: what follows is imported when it is known what they are. `why` is thrown again if no
// sizes would help. Defines the graph's outputs.
void defer_rest(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first, Failure why);

}  // namespace hone::onnx_io
