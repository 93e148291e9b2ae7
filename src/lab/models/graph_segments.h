#pragma once

#include <vector>

#include "lab/models/graph_model.h"

// Graph Segment Training (Cao et al. 2023): additive models of graphs that are too large to be
// trained on whole. A graph is cut into segments, and each step goes through one of them. The
// results of other segments are looked up in a table of their results when they were last computed.
// Some of these are left out by chance, and the trained segment counts for those in their place. In
// the end all segments are computed, and the last layer is trained alone with what they come to. A
// step takes as much memory as a segment, however large the graph is.

namespace hone {

// Runs of at most `nodes` nodes in their order, with the edges and configurable nodes within each.
// Edges between runs are dropped. Segments without configurable nodes are left out: what they add
// to a score is the same for all configurations. Times are those of the whole graph.
std::vector<ConfiguredGraph> segments_of(const ConfiguredGraph& graph, int64_t nodes);

struct SegmentOptions {
  double keeps = 0.5;        // the probability that what the table says of a segment counts
  int64_t head_epochs = 20;  // of the last layer; 0: it stays as it is
  bool corrects = true;      // the weight of the trained segment makes up for what is left out
};
// The weight of the trained segment of `count` counts: it stands for itself, and on average for
// those that are left out.
double segment_weight(const SegmentOptions& options, size_t count);

// Trains by segments of `options.segments` nodes at most. The reduction must be additive.
// `options.slates` are graphs of a step. Compression comes first, if `options.hops` says so.
Result<GraphModel> train_by_segments(std::span<const ConfiguredGraph> graphs,
                                     const GraphTraining& options,
                                     const SegmentOptions& segments = {});

// As scores_of(), segment by segment.
Result<std::vector<double>> scores_by_segments(const GraphModel& model,
                                               const ConfiguredGraph& graph, int64_t nodes,
                                               const CompileOptions& compile = {});

}  // namespace hone
