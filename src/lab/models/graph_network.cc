#include "lab/models/graph_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "lab/tpu/features.h"
#include "learn/graph_data.h"
#include "learn/graph_layers.h"
#include "learn/layers.h"
#include "learn/losses.h"

namespace hone {
namespace {

constexpr size_t kMostValues = 12;    // of a column, for each to be told apart
constexpr double kTypicalNodes = 32;  // what sums are divided by
constexpr double kScoreLeak = 0.1;    // of the layers behind the reduction: none of them goes dead
constexpr float kLeastDeviation = 1e-4F;
constexpr double kShareOfSquares = 0.1;  // of a mixed loss
// For scores that are logarithms of times, in losses of pairs: whoever is 10 % apart should be told
// apart with some confidence.
constexpr double kSteepness = 20;

// Each node behind those that it reads; of several that may come next the first by number. A node
// that reads itself by way of others comes last.
std::vector<int64_t> order_of_reads(std::span<const std::array<int32_t, 2>> edges, size_t nodes) {
  std::vector<int64_t> waits(nodes, 0), order;
  std::vector<std::vector<int64_t>> readers(nodes);
  for (const auto& [reader, read] : edges) {
    ++waits[static_cast<size_t>(reader)];
    readers[static_cast<size_t>(read)].push_back(reader);
  }
  std::set<int64_t> ready;
  for (size_t i = 0; i < nodes; ++i)
    if (waits[i] == 0) ready.insert(static_cast<int64_t>(i));
  while (!ready.empty()) {
    order.push_back(*ready.begin());
    ready.erase(ready.begin());
    for (int64_t reader : readers[static_cast<size_t>(order.back())])
      if (--waits[static_cast<size_t>(reader)] == 0) ready.insert(reader);
  }
  for (size_t i = 0; i < nodes; ++i)
    if (waits[i] > 0) order.push_back(static_cast<int64_t>(i));
  return order;
}

float compressed_number(float x) { return std::copysign(std::log1p(std::abs(x)), x); }

// Columns of features as they come, row by row of several tables.
class ColumnStatistics {
 public:
  explicit ColumnStatistics(size_t columns) : columns_(columns) {}

  void add(const tpu::Features& features) {
    for (size_t i = 0; i < features.rows(); ++i) {
      const std::span<const float> row = features.row(i);
      for (size_t f = 0; f < columns_.size(); ++f) columns_[f].add(row[f]);
    }
  }
  std::vector<ScaledColumn> scaled(bool tells_values) const {
    std::vector<ScaledColumn> kept;
    for (size_t f = 0; f < columns_.size(); ++f) {
      const Column& column = columns_[f];
      const double mean = column.sum / std::max(column.count, 1.0);
      const double variance = column.squares / std::max(column.count, 1.0) - mean * mean;
      const auto deviation = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
      if (deviation < kLeastDeviation) continue;
      kept.push_back({.column = static_cast<int64_t>(f),
                      .mean = static_cast<float>(mean),
                      .factor = 1 / deviation});
      if (!tells_values || !column.is_integer || column.values.size() > kMostValues) continue;
      for (float value : column.values)
        kept.push_back({.column = static_cast<int64_t>(f), .mean = value, .factor = 0});
    }
    return kept;
  }

 private:
  struct Column {
    double sum = 0, squares = 0, count = 0;
    std::set<float> values = {};  // until there are too many
    bool is_integer = true;

    void add(float value) {
      const auto x = static_cast<double>(compressed_number(value));
      sum += x;
      squares += x * x;
      ++count;
      is_integer = is_integer && value == std::round(value);
      if (values.size() <= kMostValues) values.insert(value);
    }
  };
  std::vector<Column> columns_;
};

}  // namespace

// ---- Features ----------------------------------------------------------------------------------

float ScaledColumn::of(float x) const {
  if (factor == 0) return x == mean ? 1.0F : 0.0F;
  return (compressed_number(x) - mean) * factor;
}

GraphScale scale_of(std::span<const ConfiguredGraph> graphs) {
  if (graphs.empty()) return {};
  ColumnStatistics nodes(graphs[0].graph.nodes.names.size());
  ColumnStatistics configs(graphs[0].configs.names.size());
  for (const ConfiguredGraph& graph : graphs) {
    nodes.add(graph.graph.nodes);
    configs.add(graph.configs);
  }
  return {nodes.scaled(false), configs.scaled(!graphs[0].config_nodes.empty())};
}

ScaledGraph scaled(const ConfiguredGraph& graph, const GraphScale& scale, double noise) {
  ScaledGraph scaled = {.graph = &graph,
                        .nodes = {},
                        .sources = {},
                        .targets = {},
                        .order = order_of_reads(graph.graph.edges, graph.graph.opcodes.size()),
                        .noise = {}};
  for (size_t i = 0; i < graph.times.size(); ++i) {
    const std::vector<float>& own = graph.besides.noise;
    const double its = own.empty() ? 0 : static_cast<double>(own[i]);
    scaled.noise.push_back(static_cast<float>(std::hypot(noise, its)));
  }
  for (size_t i = 0; i < graph.graph.opcodes.size(); ++i) {
    const std::span<const float> row = graph.graph.nodes.row(i);
    for (const ScaledColumn& each : scale.nodes)
      scaled.nodes.push_back(each.of(row[static_cast<size_t>(each.column)]));
  }
  for (const auto& [reader, read] : graph.graph.edges) {
    scaled.sources.insert(scaled.sources.end(), {read, reader});
    scaled.targets.insert(scaled.targets.end(), {reader, read});
  }
  return scaled;
}

// ---- Batches -----------------------------------------------------------------------------------

void GraphRoom::hold(const ScaledGraph& graph) {
  nodes = std::max(nodes, std::ssize(graph.graph->graph.opcodes));
  edges = std::max(edges, std::ssize(graph.sources));
}

namespace {

// Fills a batch graph by graph; what is left of the room follows at the end.
class BatchWriter {
 public:
  BatchWriter(std::span<const Slate> slates, const GraphScale& scale, GraphRoom room,
              bool in_sequence)
      : slates_(slates),
        scale_(scale),
        in_sequence_(in_sequence),
        configs_of_slate_(std::ssize(slates[0].configs)),
        by_node_(!slates[0].graph->graph->config_nodes.empty()) {
    graphs_ = std::ssize(slates) * (by_node_ ? configs_of_slate_ : 1);
    nodes_ = graphs_ * room.nodes;
    edges_ = graphs_ * room.edges;
    const auto rows = static_cast<size_t>(nodes_);
    features_.reserve(rows * scale.nodes.size());
    if (by_node_) configs_.assign(rows * config_columns(), 0);
  }

  Result<Batch> run() {
    for (const Slate& slate : slates_) {
      const ConfiguredGraph& graph = *slate.graph->graph;
      for (size_t config : slate.configs) {
        times_.push_back(static_cast<float>(std::log(graph.times[config])));
        const std::vector<float>& priced = graph.besides.priced;
        prices_.push_back(priced.empty() ? 0 : std::log(priced[config]));
        noise_.push_back(slate.graph->noise[config]);
        if (by_node_) {
          add_by_node(graph.config(config), graph);
          add_graph(*slate.graph);
        } else {
          add_row(graph.config(config), configs_);
        }
      }
      if (!by_node_) add_graph(*slate.graph);
    }
    return finish();
  }

 private:
  // One more than of the scale: whether a node is configurable.
  size_t config_columns() const { return scale_.configs.size() + (by_node_ ? 1 : 0); }

  void add_row(std::span<const float> row, std::vector<float>& to) const {
    for (const ScaledColumn& each : scale_.configs)
      to.push_back(each.of(row[static_cast<size_t>(each.column)]));
  }
  void add_by_node(std::span<const float> rows, const ConfiguredGraph& graph) {
    const size_t columns = graph.configs.names.size();
    for (size_t k = 0; k < graph.config_nodes.size(); ++k) {
      std::vector<float> row;
      add_row(rows.subspan(k * columns, columns), row);
      row.push_back(1);
      const size_t node = opcodes_.size() + static_cast<size_t>(graph.config_nodes[k]);
      std::ranges::copy(row,
                        configs_.begin() + static_cast<std::ptrdiff_t>(node * config_columns()));
    }
  }
  void add_graph(const ScaledGraph& graph) {
    const std::vector<int32_t>& opcodes = graph.graph->graph.opcodes;
    const auto first = std::ssize(opcodes_);
    opcodes_.insert(opcodes_.end(), opcodes.begin(), opcodes.end());
    features_.insert(features_.end(), graph.nodes.begin(), graph.nodes.end());
    for (int64_t each : graph.sources) sources_.push_back(first + each);
    for (int64_t each : graph.targets) targets_.push_back(first + each);
    if (in_sequence_) {
      std::vector<int64_t>& sequence = sequences_.emplace_back();
      for (int64_t each : graph.order) sequence.push_back(first + each);
    }
    graph_of_.resize(opcodes_.size(), number_++);
  }
  // The rest of the room belongs to no graph, and its edges end at no node.
  Result<Batch> finish() {
    const auto rows = static_cast<size_t>(nodes_);
    HONE_CHECK(opcodes_.size() <= rows && std::ssize(sources_) <= edges_, "no room for a graph");
    opcodes_.resize(rows, 0);
    features_.resize(rows * scale_.nodes.size(), 0);
    graph_of_.resize(rows, graphs_);
    sources_.resize(static_cast<size_t>(edges_), 0);
    targets_.resize(static_cast<size_t>(edges_), nodes_);
    const Dim slates = std::ssize(slates_), count = configs_of_slate_;
    const auto columns = static_cast<int64_t>(scale_.nodes.size());
    const auto of_configs = static_cast<int64_t>(config_columns());
    const Type configs =
        by_node_ ? reals({nodes_, of_configs}) : reals({slates, count, of_configs});
    Batch batch = {
        {"opcodes",
         Tensor::of(Type::get(DType::i32, {nodes_}), std::span<const int32_t>(opcodes_))},
        {"nodes", Tensor::of(reals({nodes_, columns}), std::span<const float>(features_))},
        {"configs", Tensor::of(configs, std::span<const float>(configs_))},
        {"times", Tensor::of(reals({slates, count}), std::span<const float>(times_))},
        {"prices", Tensor::of(reals({slates, count}), std::span<const float>(prices_))},
        {"noise", Tensor::of(reals({slates, count}), std::span<const float>(noise_))}};
    HONE_TRY(add_segments(batch, "graphs", graph_of_, graphs_));
    if (in_sequence_)
      HONE_TRY(add_sequences(batch, "sequences", sequences_, nodes_ / graphs_, nodes_));
    HONE_TRY(add_edges(batch, "edges", sources_, targets_, nodes_));
    return batch;
  }

  const std::span<const Slate> slates_;
  const GraphScale& scale_;
  const bool in_sequence_;
  const int64_t configs_of_slate_;
  const bool by_node_;
  int64_t graphs_ = 0, nodes_ = 0, edges_ = 0;  // with padding
  int64_t number_ = 0;                          // of the next graph
  std::vector<int32_t> opcodes_;
  std::vector<int64_t> graph_of_, sources_, targets_;
  std::vector<std::vector<int64_t>> sequences_;  // by graph
  std::vector<float> features_, configs_, times_, prices_, noise_;
};

}  // namespace

Result<Batch> graph_batch(std::span<const Slate> slates, const GraphScale& scale, GraphRoom room,
                          bool in_sequence) {
  return BatchWriter(slates, scale, room, in_sequence).run();
}

GraphSlates::GraphSlates(std::span<const ScaledGraph> graphs, const GraphScale& scale,
                         int64_t slate, int64_t draws, uint64_t seed, bool in_sequence)
    : graphs_(graphs),
      scale_(scale),
      slate_(slate),
      draws_(draws),
      seed_(seed),
      in_sequence_(in_sequence) {
  for (const ScaledGraph& each : graphs) room_.hold(each);
}

std::vector<size_t> draw_configs(std::span<const double> times, int64_t count, Rng& rng) {
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> fast = order;
  std::ranges::sort(fast, {}, [&](size_t i) { return std::pair(times[i], i); });
  fast.resize((fast.size() + 3) / 4);
  rng.shuffle(order);
  rng.shuffle(fast);
  std::vector<size_t> drawn;
  for (size_t i = 0, next = 0; std::ssize(drawn) < count; ++i)
    drawn.push_back(i % 3 == 2 ? fast[i / 3 % fast.size()] : order[next++ % order.size()]);
  return drawn;
}

Slate GraphSlates::drawn(int64_t sample) const {
  const ScaledGraph& graph = graphs_[static_cast<size_t>(sample / draws_)];
  Rng rng(hash_combine(seed_, static_cast<uint64_t>(sample)));
  return {&graph, draw_configs(graph.graph->times, slate_, rng)};
}

Result<Batch> GraphSlates::batch(std::span<const int64_t> samples, int64_t /*bucket*/) const {
  std::vector<Slate> slates;
  for (int64_t sample : samples) slates.push_back(drawn(sample));
  return graph_batch(slates, scale_, room_, in_sequence_);
}

// ---- Networks ----------------------------------------------------------------------------------

std::string_view name(MessagePassing passing) {
  constexpr std::string_view kNames[] = {"sage", "gat", "gin"};
  return kNames[static_cast<size_t>(passing)];
}

std::string_view name(GraphReduction reduction) {
  constexpr std::string_view kNames[] = {"columns", "additive", "lstm", "transformer"};
  return kNames[static_cast<size_t>(reduction)];
}

std::string_view name(GraphLoss loss) {
  constexpr std::string_view kNames[] = {"logistic", "weighted",    "hinge",
                                         "list_mle", "log_squared", "mixed"};
  return kNames[static_cast<size_t>(loss)];
}

namespace {

Value passed(Network& net, std::string_view name, Value x, const Edges& edges,
             const GraphNetworkOptions& options) {
  const int64_t width = options.width;
  switch (options.passing) {
    case MessagePassing::sage: return graph_sage(net, name, x, edges, width);
    case MessagePassing::gat: return graph_attention(net, name, x, edges, width);
    case MessagePassing::gin: return graph_isomorphism(net, name, x, edges, width, width);
  }
  return x;
}

// A row of each graph, [graphs, any].
Value reduced(Network& net, Value x, const GraphNetworkOptions& options) {
  switch (options.reduction) {
    case GraphReduction::lstm:
      return recurrent_pooling(net, "reduction", x, sequences_in(net, "sequences"), options.width);
    case GraphReduction::transformer:
      return encoder_pooling(net, "reduction", x, sequences_in(net, "sequences"));
    default: break;
  }
  const Segments graphs = segments_in(net, "graphs");
  return concat(
      {segment_mean(x, graphs), segment_max(x, graphs), segment_sum(x, graphs) / kTypicalNodes}, 1);
}

bool is_by_node(Value configs) { return configs.rank() == 2; }

}  // namespace

Value node_states(Network& net, const GraphNetworkOptions& options) {
  const Edges edges = edges_in(net, "edges");
  const Value configs = net.input("configs"), nodes = net.input("nodes");
  const Value numbers = net.input("opcodes");
  if (!net.b.ok()) return nodes;
  const Value opcodes = embedding(net, "opcode", numbers, tpu::kLastOpcode + 1, options.embedding);
  Value x =
      is_by_node(configs) ? concat({opcodes, nodes, configs}, 1) : concat({opcodes, nodes}, 1);
  x = relu(linear(net, "input", x, options.width));
  for (int64_t i = 0; i < options.layers; ++i)
    x = x + relu(passed(net, fmt::format("passing{}", i), x, edges, options));
  return x;
}

namespace {

// The score of the network itself.
Value scores_of_network(Network& net, const GraphNetworkOptions& options, int64_t slates) {
  Value x = node_states(net, options);
  const Value configs = net.input("configs");
  if (!net.b.ok()) return x;
  if (options.reduction == GraphReduction::additive) {
    if (options.compares) {
      net.b.fail(bad_input("scores that add up by node compare no configurations")
                     .with_hint("reduce columns"));
      return x;
    }
    if (!is_by_node(configs)) {
      net.b.fail(bad_input("a configuration of a kernel has no nodes whose scores add up")
                     .with_hint("reduce columns"));
      return x;
    }
    return reshape(segment_sum(linear(net, "node", x, 1), segments_in(net, "graphs")),
                   {slates, -1});
  }
  x = reduced(net, x, options);
  if (!net.b.ok()) return x;
  if (is_by_node(configs)) {
    x = reshape(linear(net, "score0", x, options.width), {slates, -1, options.width});
  } else {
    x = unsqueeze(linear(net, "kernel", x, options.width), 1) +
        linear(net, "config", configs, options.width, false);
    x = linear(net, "score0", maximum(x, x * kScoreLeak), options.width);
  }
  if (options.compares) x = transformer_layer(net, "compared", x, {});
  return squeeze(linear(net, "score1", maximum(x, x * kScoreLeak), 1), 2);
}

}  // namespace

Value graph_scores(Network& net, const GraphNetworkOptions& options, int64_t slates) {
  const Value added = scores_of_network(net, options, slates);
  if (!net.b.ok() || !options.skeleton) return added;
  const Value share = net.weight(kShareWeight, {}, Initializer::constant(0));
  const Value prices = net.input("prices");
  return net.b.ok() ? prices + broadcast(share, prices.dims(), {}) * added : added;
}

Objective graph_objective(Network& net, const GraphNetworkOptions& options) {
  const Value times = net.input("times");
  if (!net.b.ok()) return {times};
  return loss_of(net, graph_scores(net, options, times.dim(0).value()), options);
}

Objective loss_of(Network& net, Value scores, const GraphNetworkOptions& options) {
  const Value times = net.input("times"), noise = net.input("noise");
  if (!net.b.ok()) return {times};
  const Value steep = options.skeleton ? scores * kSteepness : scores;
  switch (options.loss) {
    case GraphLoss::logistic:  // times within twice their deviations of each other are equal
      return {noisy_pairwise_logistic(-steep, -times, 2.0 * noise)};
    case GraphLoss::weighted: return {weighted_pairwise_logistic(-steep, -times, 2.0 * noise)};
    case GraphLoss::hinge: return {pairwise_hinge(-steep, -times)};
    case GraphLoss::list_mle: return {list_mle(-steep, -times)};
    case GraphLoss::log_squared: return {mean_squared_error(scores, times)};
    case GraphLoss::mixed:
      return {noisy_pairwise_logistic(-steep, -times, 2.0 * noise) +
              kShareOfSquares * mean_squared_error(scores, times)};
  }
  return {times};
}

}  // namespace hone
