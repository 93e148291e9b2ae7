#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "learn/network.h"

// Tensors of a batch that layers on graphs read (graph_layers.h).

namespace hone {

// Puts "NAME.of" and "NAME.offsets" into the batch. `of` is the segment of each row; it does not
// decrease. Rows of no segment stand at the end and have `size`, the number of segments.
Status add_segments(Batch& batch, std::string_view name, std::span<const int64_t> of, int64_t size);

// Puts the edges of a graph into the batch, in the order of their targets, and in both orders:
// "NAME.targets.of", "NAME.targets.offsets", "NAME.sources", "NAME.by_source" and
// "NAME.source_offsets". Edges with the same target keep their order. An edge whose target is
// `nodes` is padding. Gives where each edge stood before, for features of edges.
Result<std::vector<int64_t>> add_edges(Batch& batch, std::string_view name,
                                       std::span<const int64_t> sources,
                                       std::span<const int64_t> targets, int64_t nodes);

// Puts "NAME.nodes", "NAME.share" and "NAME.last" into the batch: the nodes of each graph in the
// order of its list, which has at least one and at most `places`.
Status add_sequences(Batch& batch, std::string_view name,
                     std::span<const std::vector<int64_t>> graphs, int64_t places, int64_t nodes);

}  // namespace hone
