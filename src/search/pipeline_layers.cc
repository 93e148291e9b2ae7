#include "search/pipeline_layers.h"

#include <algorithm>
#include <climits>
#include <set>

#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "search/pipeline_index.h"
#include "search/pipeline_stages.h"

namespace hone {
namespace {

constexpr int kNoLayer = -1;
// Layers are made of items: forward nodes in their order, of about equal time.
constexpr int kMostItems = 96;

double held_bytes_of(const Graph& graph, ValueId v) {
  return static_cast<double>(graph.type(v).static_bytes());
}

// Calls fn(user) for the users of all results of a node.
template <class Fn>
void each_user(const Graph& graph, const std::vector<std::vector<NodeId>>& users, NodeId n,
               const Fn& fn) {
  for (const ValueId v : graph.results(n))
    for (const NodeId user : users[v.index]) fn(user);
}

class Layers {
 public:
  Layers(const Graph& graph, std::span<const LayerPart> parts, std::span<const double> seconds)
      : graph_(graph),
        parts_(parts),
        seconds_(seconds),
        users_(users_of_values(graph)),
        layer_(graph.node_count(), kNoLayer) {}

  std::vector<int> run(int layers) {
    divide_forward(layers);
    // Weights, and values that are given, belong to the forward nodes that use them.
    take_from_users([&](NodeId n) { return is_given(n); });
    place_backward();
    take_from_users([&](NodeId n) { return is_given(n) && layer_[n.index] == kNoLayer; });
    for (int& layer : layer_) layer = std::max(layer, 0);
    return std::move(layer_);
  }

 private:
  LayerPart part(NodeId n) const { return parts_[n.index]; }
  bool is_given(NodeId n) const {
    return part(n) == LayerPart::leaf || part(n) == LayerPart::given;
  }

  void divide_forward(int layers) {
    std::vector<NodeId> order;
    double all = 0;
    for (const NodeId n : graph_.nodes())
      if (part(n) == LayerPart::forward) {
        order.push_back(n);
        all += seconds_[n.index];
      }
    if (order.empty()) return;
    std::vector<double> items;
    std::vector<int> item_of(graph_.node_count(), kNoLayer);
    for (const NodeId n : order) {
      const bool is_full = items.empty() || items.back() >= all / kMostItems;
      if (is_full) items.push_back(0);
      items.back() += seconds_[n.index];
      item_of[n.index] = static_cast<int>(items.size()) - 1;
    }
    const std::vector<int> ends = clustered(items, received(items.size(), item_of), layers);
    for (const NodeId n : order)
      layer_[n.index] =
          static_cast<int>(std::ranges::upper_bound(ends, item_of[n.index]) - ends.begin());
  }

  // Bytes that items i to k-1 receive, each value once.
  std::vector<std::vector<double>> received(size_t items, const std::vector<int>& item_of) const {
    std::vector<std::vector<double>> bytes(items + 1, std::vector<double>(items + 2, 0));
    for (const NodeId n : graph_.nodes()) {
      if (item_of[n.index] == kNoLayer) continue;
      for (const ValueId v : graph_.results(n)) {
        std::set<int> readers;
        for (const NodeId user : users_[v.index])
          if (item_of[user.index] > item_of[n.index]) readers.insert(item_of[user.index]);
        for (int i = item_of[n.index] + 1; !readers.empty() && i <= *readers.rbegin(); ++i)
          bytes[index_at(i)][index_at(*readers.lower_bound(i)) + 1] += held_bytes_of(graph_, v);
      }
    }
    for (std::vector<double>& row : bytes)
      for (size_t k = 1; k < row.size(); ++k) row[k] += row[k - 1];
    return bytes;
  }

  // The least layer of users that have one, last nodes first.
  template <class Which>
  void take_from_users(const Which& which) {
    for (size_t i = graph_.node_count(); i-- > 0;) {
      const NodeId n = {static_cast<uint32_t>(i)};
      if (!which(n)) continue;
      int least = INT_MAX;
      each_user(graph_, users_, n, [&](NodeId user) {
        if (layer_[user.index] != kNoLayer) least = std::min(least, layer_[user.index]);
      });
      if (least != INT_MAX) layer_[i] = least;
    }
  }

  // The layer of what a node reads of the way forward; none: kNoLayer.
  int read_layer(NodeId n) const {
    int most = kNoLayer;
    for (const ValueId v : graph_.operands(n)) {
      if (v.is_none()) continue;
      const NodeId maker = graph_.producer(v);
      if (part(maker) == LayerPart::forward || is_given(maker))
        most = std::max(most, layer_[maker.index]);
    }
    return most;
  }

  // A gradient of a layer reads what the layer before made, and is added up for the layer's own
  // weight. So a node goes as far up as all of its users are, and no further than what it reads.
  void place_backward() {
    std::vector<int> wanted(graph_.node_count(), kNoLayer);
    for (size_t i = graph_.node_count(); i-- > 0;) {
      const NodeId n = {static_cast<uint32_t>(i)};
      if (!is_behind(n)) continue;
      int least = INT_MAX;
      each_user(graph_, users_, n, [&](NodeId user) {
        if (is_behind(user)) least = std::min(least, wanted[user.index]);
      });
      wanted[i] = std::max(read_layer(n), least == INT_MAX ? kNoLayer : least);
    }
    for (const NodeId n : graph_.nodes()) {
      if (!is_behind(n)) continue;
      int most = INT_MAX;
      for (const ValueId v : graph_.operands(n))
        if (!v.is_none() && part(graph_.producer(v)) == LayerPart::backward)
          most = std::min(most, layer_[graph_.producer(v).index]);
      int& layer = layer_[n.index];
      layer = wanted[n.index] != kNoLayer ? wanted[n.index] : most == INT_MAX ? 0 : most;
      if (part(n) == LayerPart::backward) layer = std::min(layer, most);
    }
  }
  bool is_behind(NodeId n) const {
    return part(n) == LayerPart::backward || part(n) == LayerPart::late;
  }

  const Graph& graph_;
  const std::span<const LayerPart> parts_;
  const std::span<const double> seconds_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<int> layer_;
};

}  // namespace

std::vector<std::vector<NodeId>> users_of_values(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.value_count());
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.operands(n))
      if (!v.is_none() && (users[v.index].empty() || users[v.index].back() != n))
        users[v.index].push_back(n);
  return users;
}

std::vector<LayerPart> parts_of_nodes(const MicroBatch& batch, const Graph& whole) {
  const Graph& graph = batch.graph;
  std::vector<bool> is_state(graph.outputs().size(), false);
  for (const Donation& one : whole.donations()) is_state[one.output] = true;
  std::vector<bool> needed(graph.value_count(), false), has_rows(graph.value_count(), false),
      has_sum(graph.value_count(), false);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (!is_state[i]) needed[graph.outputs()[i].index] = true;
  for (size_t i = graph.node_count(); i-- > 0;) {
    const NodeId n = {static_cast<uint32_t>(i)};
    bool is_needed = false;
    for (const ValueId v : graph.results(n)) is_needed = is_needed || needed[v.index];
    if (is_needed)
      for (const ValueId v : graph.operands(n))
        if (!v.is_none()) needed[v.index] = true;
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    has_rows[graph.inputs()[i].index] = batch.inputs[i] != kWhole;
  std::vector<LayerPart> parts(graph.node_count(), LayerPart::leaf);
  for (const NodeId n : graph.nodes()) {
    if (is_leaf(graph.opcode(n))) continue;
    bool rows = false, sum = false, need = false;
    for (const ValueId v : graph.operands(n)) {
      rows = rows || (!v.is_none() && has_rows[v.index]);
      sum = sum || (!v.is_none() && has_sum[v.index]);
    }
    for (const ValueId v : graph.results(n)) {
      has_rows[v.index] = rows;
      has_sum[v.index] = sum || class_of(graph.opcode(n)) == OpClass::collective;
      need = need || needed[v.index];
    }
    parts[n.index] = sum     ? LayerPart::late
                     : !rows ? LayerPart::given
                     : need  ? LayerPart::forward
                             : LayerPart::backward;
  }
  return parts;
}

Result<std::vector<double>> seconds_of_nodes(const Graph& graph, const System& system,
                                             std::span<const std::shared_ptr<const Cost>> costs,
                                             const CancelToken* cancel,
                                             std::optional<size_t> target) {
  const MeshRef one = std::make_shared<const Mesh>(Mesh{"one", {{"x", 1}}});
  MeshPlace place;
  if (target) place.targets.push_back(*target);
  ShardPrices prices(system, costs, one, cancel, std::move(place));
  std::vector<double> seconds(graph.node_count(), 0);
  for (const NodeId n : graph.nodes()) {
    if (is_leaf(graph.opcode(n)) || class_of(graph.opcode(n)) == OpClass::collective) continue;
    const NodeDivision whole = {.types = graph.operand_types(n), .op = graph.op(n)};
    seconds[n.index] = HONE_TRY(prices.node(graph, n, whole));
  }
  return seconds;
}

std::vector<int> layers_of_nodes(const Graph& graph, std::span<const LayerPart> parts,
                                 std::span<const double> seconds, int layers) {
  return Layers(graph, parts, seconds).run(layers);
}

}  // namespace hone
