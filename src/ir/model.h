#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// A model is a tree of segments, so that its shapes may depend on its data.
//
// The straight-line parts are Graphs. Values pass between segments by name; each name is given
// once. A graph's symbols are its own. Each run binds them to the shapes of the graph's inputs, so
// a segment knows the sizes that earlier segments found.

namespace hone {

struct Segment;

// Segments in order, and the names of their results. A body sees the names around it; its own names
// are not seen outside.
struct Body {
  std::vector<Segment> segments;
  std::vector<std::string> results;
};

// Cuts an output to its first `count` elements along an axis. So a graph, whose shapes are static,
// has a result whose length depends on data.
struct Crop {
  uint32_t output;  // of the graph
  uint32_t axis;
  uint32_t count;  // the output, a scalar integer, that holds the number
  bool operator==(const Crop&) const = default;
};

struct GraphSegment {
  GraphRef graph;
  std::vector<std::string> inputs;   // the values of the parameters
  std::vector<std::string> outputs;  // names for the outputs; "": not kept
  std::vector<Crop> crops = {};      // at most one per output and axis
};

struct IfSegment {
  std::string condition;  // bool[]
  Body on_true;           // both bodies have a result per name in `results`
  Body on_false;
  std::vector<std::string> results;
};

// Runs its body while the condition holds and the trip count is not reached.
struct LoopSegment {
  struct Carried {
    std::string name;  // in the body: the result of the last iteration
    std::string initial;
  };

  std::string trip_count = "";  // scalar integer; "": no bound
  std::string condition = "";   // bool[], before the first iteration; "": true
  std::string counter = "";     // in the body: the iterations before this one, i64[]; "": none
  std::vector<Carried> carried = {};
  std::vector<std::string> grown = {};  // initial values of results that grow along axis 0
  // Its results: the carried values, then a piece to append to each grown one.
  Body body;
  std::string next_condition = "";  // bool[], in the body; "": true
  // The carried values after the last iteration, then the grown ones.
  std::vector<std::string> results = {};
};

// Makes the body of a deferred segment for given static input types. Equal types give equal bodies,
// so the runner keeps them.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  virtual Result<Body> specialize(std::span<const Type> inputs) const = 0;
  virtual std::string describe() const = 0;  // for messages: "node 'detect/nms'"
};

// A part of a model that cannot be typed before the sizes of its inputs are known. Its source then
// makes its body.
//
// The body sees the inputs by their names, and no other outside names. Its results bear the names
// of this segment's results, in this order; its other names must be new in the model. Until it is
// made, nothing is known of its results, not even their element types.
struct DeferredSegment {
  std::shared_ptr<const SegmentSource> source;
  std::vector<std::string> inputs;
  std::vector<std::string> results;
};

struct Segment {
  std::variant<GraphSegment, IfSegment, LoopSegment, DeferredSegment> kind;
};

struct ModelValue {
  std::string name;
  Type type;
  bool operator==(const ModelValue&) const = default;
};

struct Model {
  std::string name = "main";
  std::vector<ModelValue> inputs;
  // A symbol that no input has is a size that depends on data.
  std::vector<ModelValue> outputs;
  std::vector<Segment> segments;
};

// One graph segment. Names that the graph lacks are made up: "input0", "output1".
Model model_of(Graph graph);
// The first segment that is deferred, in the order of the text; null if there is none.
const DeferredSegment* first_deferred(const Model& model);
// The graph of a model that is one graph from its inputs to its outputs; null for others.
const Graph* single_graph(const Model& model);

// All graphs, in the order of the text. Deferred segments have none yet.
std::vector<const Graph*> graphs_of(const Model& model);

// Checks every invariant: names are given once and before they are read, counts agree, graphs
// verify, and element types, ranks and known sizes fit.
Status verify(const Model& model);

// Binds symbols of the inputs and carries the sizes that follow into the graphs. A graph that these
// sizes do not fit stays as it is, since a run may never reach it. A deferred segment whose input
// types become known is replaced by its body.
Result<Model> specialize(const Model& model, const Bindings& bindings);

}  // namespace hone
