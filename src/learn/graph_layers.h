#pragma once

#include <string_view>

#include "learn/network.h"

// Layers on graphs, spelled out in gather and scatter. A batch of several graphs is one graph whose
// parts have no edges between them.

namespace hone {

// ---- Segments -----------------------------------------------------------------------------------
// Row i of `rows`, [count, ...], belongs to segment segments[i], an integer in [0, size). Rows of
// other segments count nothing: so a batch is padded. Results are [size, ...]; rows are added in
// their order, so that results are the same in each run. An empty segment has 0.
Value segment_sum(Value rows, Value segments, Dim size);
Value segment_mean(Value rows, Value segments, Dim size);
// Rows that are equally the largest share the derivative.
Value segment_max(Value rows, Value segments, Dim size);
// Within each segment, the softmax of the scores; 0 for rows that count nothing.
Value segment_softmax(Value scores, Value segments, Dim size);

// ---- Layers -------------------------------------------------------------------------------------
// x: [nodes, features]. Edge i goes from node sources[i] to node targets[i]. An edge whose target
// is no node counts nothing.
struct Edges {
  Value sources;
  Value targets;
};

// Of each node itself and of the mean of its neighbours. Hamilton et al. 2017.
Value graph_sage(Network& net, std::string_view name, Value x, const Edges& edges, int64_t outputs);
// An mlp of (1 + epsilon) times the node plus the sum of its neighbours. Xu et al. 2019.
Value graph_isomorphism(Network& net, std::string_view name, Value x, const Edges& edges,
                        int64_t hidden, int64_t outputs);
// Attention over the neighbours; each of the heads gives outputs / heads features. A node sees
// itself only by an edge. Velickovic et al. 2018.
Value graph_attention(Network& net, std::string_view name, Value x, const Edges& edges,
                      int64_t outputs, int64_t heads = 1);

// One row per graph, [graphs, features]: the mean of its nodes, weighted by a softmax of learned
// scores. Node i belongs to graph graph_of[i].
Value attention_pooling(Network& net, std::string_view name, Value x, Value graph_of, Dim graphs);

}  // namespace hone
