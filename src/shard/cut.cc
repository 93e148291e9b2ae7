#include "shard/cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/op_def.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

class Cutter {
 public:
  Cutter(const Graph& graph, std::span<const int32_t> device_of, int32_t devices)
      : graph_(graph),
        device_of_(device_of),
        live_(live_nodes(graph)),
        open_(static_cast<size_t>(devices), kNone),
        piece_of_(graph.node_count(), kNone),
        is_awaited_(graph.node_count()),
        needed_by_(graph.value_count()) {
    cut_.devices = devices;
  }

  Result<GraphCut> run(std::span<const std::vector<NodeId>> steps) {
    for (NodeId n : graph_.nodes())
      if (is_computed(n) &&
          (has_effect(graph_, n) || class_of(graph_.opcode(n)) == OpClass::collective))
        return unsupported("it exchanges data with other devices itself")
            .within(graph_.describe(n))
            .with_hint("divide a graph without collectives");
    add_given_constants();
    for (NodeId n : graph_.nodes())
      for (ValueId v : graph_.operands(n))
        if (is_computed(n) && !v.is_none() && device(graph_.producer(v)) != device(n))
          is_awaited_[graph_.producer(v).index] = true;
    if (steps.empty())
      for (NodeId n : by_level()) put(n);
    for (const std::vector<NodeId>& step : steps) put_step(step);
    for (NodeId n : graph_.nodes())
      HONE_CHECK(!is_computed(n) || piece_of_[n.index] != kNone, "the order of a cut has no {}",
                 graph_.describe(n));
    for (size_t d = 0; d < open_.size(); ++d) close(d);
    for (const uint32_t piece : closed_) std::ranges::sort(pieces_[piece]);
    for (const uint32_t piece : closed_) note_needs(piece);
    for (const uint32_t piece : closed_) HONE_TRY(add_piece(piece));
    add_messages();
    return std::move(cut_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  bool is_leaf(NodeId n) const {
    return is_parameter(graph_.opcode(n)) || is_constant(graph_.opcode(n));
  }
  bool is_computed(NodeId n) const { return live_[n.index] && !is_leaf(n); }
  size_t device(NodeId n) const { return static_cast<size_t>(device_of_[n.index]); }

  // Nodes before which fewer messages come, one after another, stand first.
  std::vector<NodeId> by_level() const {
    std::vector<size_t> level(graph_.node_count());
    std::vector<NodeId> order;
    for (NodeId n : graph_.nodes()) {
      if (!is_computed(n)) continue;
      order.push_back(n);
      for (ValueId v : graph_.operands(n)) {
        if (v.is_none() || is_leaf(graph_.producer(v))) continue;
        const NodeId p = graph_.producer(v);
        level[n.index] = std::max(level[n.index], level[p.index] + (device(p) != device(n)));
      }
    }
    std::ranges::sort(order, {},
                      [&](NodeId n) { return std::tuple(level[n.index], device(n), n.index); });
    return order;
  }

  // The nodes of the device from here on are a piece of their own.
  void close(size_t device) {
    if (open_[device] != kNone) closed_.push_back(open_[device]);
    open_[device] = kNone;
  }

  void add_to_open(NodeId n) {
    uint32_t& piece = open_[device(n)];
    if (piece == kNone) {
      piece = static_cast<uint32_t>(pieces_.size());
      pieces_.emplace_back();
    }
    piece_of_[n.index] = piece;
    pieces_[piece].push_back(n);
  }

  // A piece that sends something ends there. One that waits for it begins there: what is before
  // need not wait. So pieces in the order in which they are closed never wait for later ones.
  void put(NodeId n) {
    bool waits = false;
    for (ValueId v : graph_.operands(n)) {
      if (v.is_none() || is_leaf(graph_.producer(v))) continue;
      const NodeId p = graph_.producer(v);
      HONE_CHECK(piece_of_[p.index] != kNone, "{} stands before what it waits for",
                 graph_.describe(n));
      if (device(p) == device(n)) continue;
      if (open_[device(p)] == piece_of_[p.index]) close(device(p));
      waits |= !arrived_.contains({v.index, device(n)});
      arrived_.insert({v.index, device(n)});
    }
    if (waits) close(device(n));
    add_to_open(n);
  }

  void put_step(const std::vector<NodeId>& step) {
    for (NodeId n : step)
      if (is_computed(n)) put(n);
    for (NodeId n : step)
      if (is_computed(n) && is_awaited_[n.index]) close(device(n));
  }

  // A constant that is an output is given out by a piece; an input is copied.
  void add_given_constants() {
    for (ValueId v : graph_.outputs()) {
      const NodeId n = graph_.producer(v);
      cut_.output_device.push_back(device_of_[n.index]);
      is_output_.insert(v.index);
      if (is_constant(graph_.opcode(n)) && given_constants_.insert(v.index).second) add_to_open(n);
    }
  }

  void note_needs(uint32_t piece) {
    for (NodeId n : pieces_[piece])
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) needed_by_[v.index].insert({piece, device_of_[n.index]});
  }

  Status add_piece(uint32_t at) {
    const std::vector<NodeId>& nodes = pieces_[at];
    CutPiece piece = {.device = device_of_[nodes[0].index]};
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
        const bool is_constant_of_others = is_constant(graph_.opcode(n));
        const bool leaves = std::ranges::any_of(needed_by_[v.index],
                                                [&](const Need& need) { return need.piece != at; });
        if (is_output_.contains(v.index) || (leaves && !is_constant_of_others))
          piece.outputs.push_back(v);
      }
    }
    piece.graph = HONE_TRY(extract_subgraph(graph_, nodes, piece.outputs));
    piece.graph.set_name(fmt::format("{}.{}.{}", graph_.name(), piece.device, cut_.pieces.size()));
    cut_.pieces.push_back(std::move(piece));
    return {};
  }

  void add_messages() {
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const NodeId n = graph_.producer(ValueId{i});
      if (is_leaf(n)) continue;
      std::set<int32_t> targets;
      for (const Need& need : needed_by_[i]) targets.insert(need.device);
      targets.erase(device_of_[n.index]);
      for (const int32_t to : targets)
        cut_.messages.push_back({ValueId{i}, device_of_[n.index], to});
    }
  }

  struct Need {
    uint32_t piece = 0;
    int32_t device = 0;
    auto operator<=>(const Need&) const = default;
  };

  const Graph& graph_;
  const std::span<const int32_t> device_of_;
  const std::vector<bool> live_;
  std::vector<uint32_t> open_;    // by device: its last piece, or none
  std::vector<uint32_t> closed_;  // pieces, in the order of their ends
  std::vector<std::vector<NodeId>> pieces_;
  std::vector<uint32_t> piece_of_;                 // by node
  std::vector<bool> is_awaited_;                   // by node: another device waits for it
  std::set<std::pair<uint32_t, size_t>> arrived_;  // values, and devices that waited for them
  std::vector<std::set<Need>> needed_by_;          // by value
  std::set<uint32_t> is_output_;                   // values
  std::set<uint32_t> given_constants_;
  GraphCut cut_;
};

}  // namespace

Result<GraphCut> cut_graph(const Graph& graph, std::span<const int32_t> device_of, int32_t devices,
                           std::span<const std::vector<NodeId>> steps) {
  if (device_of.size() != graph.node_count())
    return bad_input("{} devices are given for {} nodes", device_of.size(), graph.node_count());
  for (NodeId n : graph.nodes())
    if (device_of[n.index] < 0 || device_of[n.index] >= devices)
      return bad_input("there is no device {}; there are {}", device_of[n.index], devices)
          .within(graph.describe(n));
  return Cutter(graph, device_of, devices).run(steps);
}

}  // namespace hone
