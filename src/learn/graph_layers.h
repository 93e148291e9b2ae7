#pragma once

#include <string_view>

#include "learn/network.h"

// Layers on graphs, made of sums over segments: the features of edges are computed where they are
// summed, and have no memory. A batch of several graphs is one graph whose parts have no edges
// between them. graph_data.h sorts edges and makes the tensors.

namespace hone {

inline Type reals(std::initializer_list<Dim> dims) { return Type::get(DType::f32, dims); }

// ---- Segments -----------------------------------------------------------------------------------
// Rows in the order of what they belong to. Segment s has the rows offsets[s] up to offsets[s + 1].
// Rows before the first offset and from the last one on count nothing: so a batch is padded.
struct Segments {
  Value of;       // [rows]: the segment of each row; that of padding is out of range
  Value offsets;  // [segments + 1]
};
// The part of the batch that add_segments() put there.
Segments segments_in(Network& net, std::string_view name);

// `rows` are [rows, ...], results [segments, ...]. An empty segment has 0.
Value segment_sum(Value rows, const Segments& segments);
Value segment_mean(Value rows, const Segments& segments);
// Rows that are equally the largest share the derivative.
Value segment_max(Value rows, const Segments& segments);
// Within each segment, the softmax of the scores; 0 for rows that count nothing.
Value segment_softmax(Value scores, const Segments& segments);

// ---- Layers -------------------------------------------------------------------------------------
// x: [nodes, features]. Edge i goes from node sources[i] to node targets.of[i].
struct Edges {
  Segments targets;  // of edges, which stand in the order of their targets
  Value sources;     // [edges]
  // The other order, which derivatives take: where edges with the same source stand, the sources
  // one after another, and where those of each source begin.
  Value by_source;       // [edges]
  Value source_offsets;  // [nodes + 1]
};
// The part of the batch that add_edges() put there.
Edges edges_in(Network& net, std::string_view name);

// Combines each node with the mean of its neighbours. Hamilton et al. 2017.
Value graph_sage(Network& net, std::string_view name, Value x, const Edges& edges, int64_t outputs);
// An mlp of (1 + epsilon) times the node plus the sum of its neighbours. Xu et al. 2019.
Value graph_isomorphism(Network& net, std::string_view name, Value x, const Edges& edges,
                        int64_t hidden, int64_t outputs);
// Attention over the neighbours; each of the heads gives outputs / heads features. A node sees
// itself only by an edge. Velickovic et al. 2018.
Value graph_attention(Network& net, std::string_view name, Value x, const Edges& edges,
                      int64_t outputs, int64_t heads = 1);

// One row per graph, [graphs, features]: the mean of its nodes, weighted by a softmax of learned
// scores. Segments are graphs, their rows nodes.
Value attention_pooling(Network& net, std::string_view name, Value x, const Segments& graphs);

// ---- Sequences ----------------------------------------------------------------------------------
// The nodes of graphs one after another, graphs side by side.
struct Sequences {
  Value nodes;  // [places, graphs]: the node at each place; behind the last one of a graph anyone
  Value share;  // [places, graphs]: 1 / nodes of the graph; 0 behind the last one
  Value last;   // [graphs]: the last place of a graph, times graphs, plus its number
};
// The part of the batch that add_sequences() put there.
Sequences sequences_in(Network& net, std::string_view name);

// One row per graph, [graphs, width]: the state of an lstm behind the last node.
Value recurrent_pooling(Network& net, std::string_view name, Value x, const Sequences& graphs,
                        int64_t width);
// One row per graph, [graphs, features]: the mean of what a transformer layer makes of its nodes,
// each of which sees those of its graph. It does not know their order.
Value encoder_pooling(Network& net, std::string_view name, Value x, const Sequences& graphs,
                      int64_t heads = 4);

}  // namespace hone
