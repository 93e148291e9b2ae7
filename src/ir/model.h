#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// A program whose shapes may depend on its data: a tree of segments.
//
// The straight-line parts are Graphs. Values pass between segments by name; each name is given
// once. A graph's symbols are its own: they are bound to the shapes of the values that it is run
// on, so a segment knows the sizes that earlier ones found out.

namespace hone {

struct Segment;

// Segments in order, and the names of what comes out of them. A body inside of another sees the
// names from outside; its own are not seen there.
struct Body {
  std::vector<Segment> segments;
  std::vector<std::string> results;
};

// Cuts an output of a graph to its first `count` elements along an axis: how a graph, whose shapes
// are static, yields a number of elements that depends on data.
struct Crop {
  uint32_t output;  // of the graph
  uint32_t axis;
  uint32_t count;  // the output, a scalar integer, that holds the number
  bool operator==(const Crop&) const = default;
};

struct GraphSegment {
  GraphRef graph;
  std::vector<std::string> inputs;   // what feeds the parameters
  std::vector<std::string> outputs;  // what the outputs are called; "": not kept
  std::vector<Crop> crops = {};      // at most one per output and axis
};

struct IfSegment {
  std::string condition;  // bool[]
  Body on_true;           // both with as many results as there are
  Body on_false;
  std::vector<std::string> results;
};

// Runs its body while the condition holds and the trip count is not reached.
struct LoopSegment {
  struct Carried {
    std::string name;  // in the body: what the last iteration made of it
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
  // What the carried values are after the last iteration, then the grown ones.
  std::vector<std::string> results = {};
};

// Makes what a part of a model is for given input types, which are static. It gives the same for
// the same types; whoever runs it keeps that.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  virtual Result<Body> specialize(std::span<const Type> inputs) const = 0;
  virtual std::string describe() const = 0;  // for messages: "node 'detect/nms'"
};

// What cannot be typed before the sizes of its inputs are known, and so is made when they are.
//
// The body that is made sees the inputs by their names, and nothing else from outside. Its results
// bear the names of this segment's results, in this order; its other names must be new in the
// model. Until it is made nothing is known of its results, not even their element types.
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
  // Symbols that no input has stand for what depends on data.
  std::vector<ModelValue> outputs;
  std::vector<Segment> segments;
};

// One graph segment. Names that the graph lacks are made up: "input0", "output1".
Model model_of(Graph graph);
// The first segment that is deferred, in the order of the text; null if there is none.
const DeferredSegment* first_deferred(const Model& model);
// The graph of a model that is one graph from its inputs to its outputs; null for others.
const Graph* single_graph(const Model& model);

// All graphs, in the order of the text; what is deferred is none yet.
std::vector<const Graph*> graphs_of(const Model& model);

// Checks every invariant: names are given once and before they are read, counts agree, graphs
// verify, and element types, ranks and known sizes fit.
Status verify(const Model& model);

// Binds symbols of the inputs and carries what is then known about sizes into the graphs. A graph
// that those sizes do not fit stays as it is: it may stand where the model never gets to. Deferred
// segments whose input types become known are replaced by what they are for these.
Result<Model> specialize(const Model& model, const Bindings& bindings);

}  // namespace hone
