#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front/onnx/import.h"

// Subgraphs of If, Loop and Scan. They become a region of an op if one graph says it all, and
// segments if sizes depend on data.

namespace hone::onnx_io {

// How long an axis that grows with every iteration may get.
inline constexpr int64_t kMostGrown = int64_t{1} << 24;

struct Region {
  std::unique_ptr<Flow> flow;
  std::unique_ptr<Frame> frame;
  std::vector<Value> parameters;
  std::vector<Value> results;
};

// With parameters of the given types for the subgraph's inputs; an error if a region cannot hold
// it. Segments may be able to. A checked one has another result, what was found (checks.h).
Result<Region> import_region(Node& n, const onnx::GraphProto& graph,
                             const std::vector<Type>& parameters);
// The captured values of both, each once.
std::vector<Slot*> joined(const std::vector<Slot*>& a, const std::vector<Slot*>& b);
// The graph, whose parameters are those of the region and then all of `captures`.
Result<GraphRef> finish(Region& region, const std::vector<Slot*>& captures);

// An input of a body and what is known of it.
struct BodyInput {
  std::string name;  // between segments; "": it is a constant
  Type type;
  Elements contents;
};

struct SegmentBody {
  Body body;
  std::vector<Type> types;  // of the results; dims that are the body's own are symbols of no use
  std::vector<int64_t> checks = {};  // in it
};

// The body of a loop. Results from `first_stacked` on get an axis of size 1 in front: they are
// pieces of what it stacks. A checked one carries what was found under the name `found`, as its
// last carried value.
SegmentBody import_body(Node& n, const onnx::GraphProto& graph,
                        const std::vector<BodyInput>& inputs, size_t first_stacked,
                        const std::string& found);

// One of an If, both of which have to be imported although a run takes one. A checked one has
// another result, what was found.
struct Branch {
  SegmentBody body;
  Bindings sizes;              // the ranges of open sizes in it that it needs
  std::optional<Error> error;  // why it cannot be typed, and there is no body
};
Branch import_branch(Node& n, const onnx::GraphProto& graph);
// In place of a branch that cannot be typed: it is imported when a run takes it, and fails then
// unless sizes help. Its results must turn out to have these element types and ranks.
SegmentBody untyped_branch(Node& n, const onnx::GraphProto& graph, const std::vector<Type>& types);

// The type of both, with a fresh symbol for each dim that differs or means nothing outside.
Type common_type(Node& n, const std::vector<Type>& types, std::string_view what);
// `type`, with symbols for the dims in which `next` differs.
Type wider_type(Node& n, Type type, Type next, std::string_view what);
// The node's results as values between segments; their names.
std::vector<std::string> define_results(Node& n, const std::vector<Type>& types);

// A condition: a bool scalar of a value that must hold one bool.
Value as_flag(Node& n, Value value, std::string_view what);
// It, if it does not depend on data.
std::optional<bool> known_flag(Node& n, Value flag);

}  // namespace hone::onnx_io
