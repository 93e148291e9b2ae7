#pragma once

#include "ir/model.h"
#include "runtime/segments.h"

namespace hone {

// The segments as the runtime executes them. Unit i is graph i of graphs_of(model). Unsupported if
// one is deferred: what it computes is known when sizes are seen, and has to be compiled then.
Result<SegmentTree> segment_tree(const Model& model);

}  // namespace hone
