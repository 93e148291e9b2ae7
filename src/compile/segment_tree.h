#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/model.h"
#include "runtime/segments.h"

namespace hone {

// Segments as the runtime executes them, with their units in the order of the text. A deferred
// segment is a unit, too: its body is made when the types of its inputs are known, and is a tree of
// its own.
struct SegmentUnits {
  SegmentTree tree;
  std::vector<std::variant<GraphRef, DeferredSegment>> units;
};
SegmentUnits segment_units(const Model& model);
// The inputs are the first values.
SegmentUnits segment_units(const Body& body, const std::vector<std::string>& inputs);

// The tree alone, where all units are graphs: unit i is graph i of graphs_of(model). Unsupported if
// a segment is deferred: what it computes is known when sizes are seen.
Result<SegmentTree> segment_tree(const Model& model);

}  // namespace hone
