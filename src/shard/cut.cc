#include "shard/cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/op_def.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

// The nodes of a device that as many messages, one after another, come before. Nodes between
// two messages that depend on each other are in pieces of their own, so pieces have an order.
struct Place {
  size_t level = 0;
  int32_t device = 0;

  auto operator<=>(const Place&) const = default;
};

class Cutter {
 public:
  Cutter(const Graph& graph, std::span<const int32_t> device_of)
      : graph_(graph),
        device_of_(device_of),
        live_(live_nodes(graph)),
        level_(graph.node_count()),
        needed_by_(graph.value_count()) {}

  Result<GraphCut> run(int32_t devices) {
    cut_.devices = devices;
    std::map<Place, std::vector<NodeId>> nodes;
    for (NodeId n : graph_.nodes()) {
      if (!live_[n.index] || is_leaf(n)) continue;
      if (has_effect(graph_, n) || class_of(graph_.opcode(n)) == OpClass::collective)
        return unsupported("it exchanges data with other devices itself")
            .within(graph_.describe(n))
            .with_hint("divide a graph without collectives");
      nodes[place(n)].push_back(n);
    }
    for (ValueId v : graph_.outputs()) {
      const NodeId n = graph_.producer(v);
      cut_.output_device.push_back(device_of_[n.index]);
      is_output_.insert(v.index);
      // A constant is given out by a piece; an input is copied.
      if (is_constant(graph_.opcode(n)) && given_constants_.insert(v.index).second)
        nodes[{0, device_of_[n.index]}].push_back(n);
    }
    for (auto& [at, list] : nodes) std::ranges::sort(list);
    for (const auto& [at, list] : nodes) note_needs(at, list);
    for (const auto& [at, list] : nodes) HONE_TRY(add_piece(at, list));
    add_messages();
    return std::move(cut_);
  }

 private:
  bool is_leaf(NodeId n) const {
    return is_parameter(graph_.opcode(n)) || is_constant(graph_.opcode(n));
  }

  Place place(NodeId n) {
    size_t& level = level_[n.index];
    for (ValueId v : graph_.operands(n)) {
      if (v.is_none()) continue;
      const NodeId p = graph_.producer(v);
      if (is_leaf(p)) continue;
      const bool is_sent = device_of_[p.index] != device_of_[n.index];
      level = std::max(level, level_[p.index] + (is_sent ? 1 : 0));
    }
    return {level, device_of_[n.index]};
  }

  void note_needs(const Place& at, const std::vector<NodeId>& nodes) {
    for (NodeId n : nodes)
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) needed_by_[v.index].insert(at);
  }

  Status add_piece(const Place& at, const std::vector<NodeId>& nodes) {
    CutPiece piece = {.device = at.device};
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    std::set<uint32_t> seen;
    for (NodeId n : nodes) {
      for (ValueId v : graph_.operands(n)) {
        if (v.is_none() || inside.contains(graph_.producer(v)) ||
            is_constant(graph_.opcode(graph_.producer(v))))
          continue;
        if (seen.insert(v.index).second) piece.inputs.push_back(v);
      }
      for (ValueId v : graph_.results(n)) {
        const std::set<Place>& users = needed_by_[v.index];
        const bool is_constant_of_others = is_constant(graph_.opcode(n));
        const bool leaves = std::ranges::any_of(users, [&](const Place& p) { return p != at; });
        if (is_output_.contains(v.index) || (leaves && !is_constant_of_others))
          piece.outputs.push_back(v);
      }
    }
    piece.graph = HONE_TRY(extract_subgraph(graph_, nodes, piece.outputs));
    piece.graph.set_name(fmt::format("{}.{}.{}", graph_.name(), at.device, at.level));
    cut_.pieces.push_back(std::move(piece));
    return {};
  }

  void add_messages() {
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const NodeId n = graph_.producer(ValueId{i});
      if (is_leaf(n)) continue;
      std::set<int32_t> targets;
      for (const Place& at : needed_by_[i]) targets.insert(at.device);
      targets.erase(device_of_[n.index]);
      for (const int32_t to : targets)
        cut_.messages.push_back({ValueId{i}, device_of_[n.index], to});
    }
  }

  const Graph& graph_;
  const std::span<const int32_t> device_of_;
  const std::vector<bool> live_;
  std::vector<size_t> level_;               // by node
  std::vector<std::set<Place>> needed_by_;  // by value
  std::set<uint32_t> is_output_;            // values
  std::set<uint32_t> given_constants_;
  GraphCut cut_;
};

}  // namespace

Result<GraphCut> cut_graph(const Graph& graph, std::span<const int32_t> device_of,
                           int32_t devices) {
  if (device_of.size() != graph.node_count())
    return bad_input("{} devices are given for {} nodes", device_of.size(), graph.node_count());
  for (NodeId n : graph.nodes())
    if (device_of[n.index] < 0 || device_of[n.index] >= devices)
      return bad_input("there is no device {}; there are {}", device_of[n.index], devices)
          .within(graph.describe(n));
  return Cutter(graph, device_of).run(devices);
}

}  // namespace hone
