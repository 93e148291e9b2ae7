#pragma once

#include <string_view>
#include <vector>

#include "base/rng.h"
#include "lab/data/configured_graph.h"
#include "learn/data.h"

// Networks on graphs of ops, that order configurations by time, and what they learn from:
//
//   embedded opcodes, node features, configurations of nodes -> input layer -> message passing
//   -> reduction -> for kernels with the kernel's configuration -> a score, lower is faster

namespace hone {

// ---- Features ----------------------------------------------------------------------------------

// The transform of a column: sign(x) log(1 + |x|) less its mean, for one of its deviation; or
// whether it has a value.
struct ScaledColumn {
  int64_t column = 0;
  float mean = 0, factor = 0;  // factor 0: whether it is `mean`
  float of(float x) const;
  bool operator==(const ScaledColumn&) const = default;
};
// Columns that are always the same are left out. In configurations of nodes, a column of few
// different integers also tells which one it is: dims have no order.
struct GraphScale {
  std::vector<ScaledColumn> nodes, configs;
  bool operator==(const GraphScale&) const = default;
};
GraphScale scale_of(std::span<const ConfiguredGraph> graphs);

// A graph as networks read it; it outlives this.
struct ScaledGraph {
  const ConfiguredGraph* graph = nullptr;
  std::vector<float> nodes;               // [nodes, columns of the scale]
  std::vector<int64_t> sources, targets;  // edges in both directions
  std::vector<int64_t> order;             // of nodes: each behind those that it reads
  std::vector<float> noise;               // by configuration: of its time
};
// To the noise that the graph knows of each time comes that of all.
ScaledGraph scaled(const ConfiguredGraph& graph, const GraphScale& scale, double noise = 0);

// ---- Batches -----------------------------------------------------------------------------------

// How many nodes and edges a graph of a batch may have: what is left of the room is padding.
struct GraphRoom {
  int64_t nodes = 0, edges = 0;
  void hold(const ScaledGraph& graph);
};
// Some configurations of a graph, as many of each graph in a batch.
struct Slate {
  const ScaledGraph* graph = nullptr;
  std::vector<size_t> configs;
};
// "opcodes", "nodes", "edges", "graphs", "configs", and by slate and configuration "times" and
// "prices" (logarithms; 0 where the graph knows no prices) and "noise". With configurable nodes
// each configuration is a graph of its own. `in_sequence`: also "sequences", for networks that read
// nodes one behind the other.
Result<Batch> graph_batch(std::span<const Slate> slates, const GraphScale& scale, GraphRoom room,
                          bool in_sequence);

// Draws `count` configurations; every third one is of the fastest quarter. If there are fewer, they
// come again in turns.
std::vector<size_t> draw_configs(std::span<const double> times, int64_t count, Rng& rng);

// Samples are slates, each drawn anew; a graph has as many as any other.
class GraphSlates : public Dataset {
 public:
  // All of it outlives the data set.
  GraphSlates(std::span<const ScaledGraph> graphs, const GraphScale& scale, int64_t slate,
              int64_t draws, uint64_t seed, bool in_sequence);

  int64_t size() const override { return std::ssize(graphs_) * draws_; }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override;

 private:
  Slate drawn(int64_t sample) const;

  const std::span<const ScaledGraph> graphs_;
  const GraphScale& scale_;
  const int64_t slate_, draws_;
  const uint64_t seed_;
  const bool in_sequence_;
  GraphRoom room_;
};

// ---- Networks ----------------------------------------------------------------------------------

enum class MessagePassing : uint8_t { sage, gat, gin };
enum class GraphReduction : uint8_t {
  columns,      // mean, largest and sum of each column, and layers on them
  additive,     // a number of each node, added up
  lstm,         // the state behind the last node, each of which stands behind what it reads
  transformer,  // the mean of nodes that have looked at one another
};
enum class GraphLoss : uint8_t {
  logistic,  // of pairs whose times differ by more than their noise
  weighted,  // the same, each by how far the logarithms of the times are apart
  hinge,
  list_mle,
  log_squared,
  mixed,  // logistic and log_squared: the order, and the time
};
inline constexpr int kMessagePassings = 3, kGraphReductions = 4, kGraphLosses = 6;

struct GraphNetworkOptions {
  MessagePassing passing = MessagePassing::sage;
  GraphReduction reduction = GraphReduction::columns;
  GraphLoss loss = GraphLoss::logistic;
  // Configurations of a slate look at one another in front of the score, which therefore says what
  // is fast among them alone. Not of additive scores.
  bool compares = false;
  // A score is the logarithm of the plan's price and what the network adds to it, at first nothing.
  bool skeleton = false;
  int64_t width = 64, embedding = 32, layers = 2;
  bool reads_sequences() const {
    return reduction == GraphReduction::lstm || reduction == GraphReduction::transformer;
  }
  bool operator==(const GraphNetworkOptions&) const = default;
};
std::string_view name(MessagePassing passing);
std::string_view name(GraphReduction reduction);
std::string_view name(GraphLoss loss);

// The state of each node behind the last layer: [nodes, width].
Value node_states(Network& net, const GraphNetworkOptions& options);
// The scores of a batch: [slates, configurations]. Kernels have no configurable nodes, so no
// additive scores.
Value graph_scores(Network& net, const GraphNetworkOptions& options, int64_t slates);
Objective graph_objective(Network& net, const GraphNetworkOptions& options);
// The loss of scores for the "times" of a batch.
Objective loss_of(Network& net, Value scores, const GraphNetworkOptions& options);
// The weight that what a network adds to prices is multiplied by.
inline constexpr std::string_view kShareWeight = "share";

}  // namespace hone
