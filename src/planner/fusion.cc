#include "planner/fusion.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ir/op_def.h"
#include "kernel/group_work.h"
#include "kernel/kernel_body.h"
#include "plan/view.h"

namespace hone {
namespace {

constexpr size_t kMaxNodes = 64;
constexpr size_t kMaxOperands = 64;  // of one node
// How often elements may be computed, at most.
constexpr double kCheapRepetition = 2;
constexpr double kRowRepetition = 4;  // counted by paths that lead to the same row
constexpr uint32_t kNoGroup = UINT32_MAX;

enum class Kind : uint8_t { cheap, row, contraction, window, alone };

Kind kind_of(Opcode opcode) {
  switch (class_of(opcode)) {
    case OpClass::contraction: return Kind::contraction;
    case OpClass::reduction: return Kind::row;
    case OpClass::window: return Kind::window;
    default: return is_fusible(opcode) ? Kind::cheap : Kind::alone;
  }
}

class Fuser {
 public:
  Fuser(const Graph& graph, const Users& users, const FusionFreedom& freedom)
      : graph_(graph), users_(users), freedom_(freedom) {}

  Fusion run() {
    group_of_.assign(graph_.node_count(), kNoGroup);
    feeds_contraction_.assign(graph_.node_count(), false);
    has_memory_.assign(graph_.node_count(), false);
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;)
      if (const NodeId n{i}; freedom_.is_free[i] && !join(n)) found(n);
    Fusion fusion;
    for (std::vector<NodeId>& nodes : groups_) {
      std::ranges::reverse(nodes);
      take_views(nodes, fusion.views);
      if (!nodes.empty()) fusion.groups.push_back(std::move(nodes));
    }
    fusion.views.insert(fusion.views.end(), views_.begin(), views_.end());
    std::ranges::sort(fusion.groups, {}, [](const auto& nodes) { return nodes.back(); });
    return fusion;
  }

 private:
  bool can_be_view(NodeId n) const {
    return freedom_.may_be_view[n.index] && !has_memory_[n.index] &&
           check_view(graph_, users_, n).ok();
  }

  // What it joins is written where it lies in the result.
  bool can_join_in_memory(NodeId concat) const {
    if (!can_be_view(concat)) return false;
    return std::ranges::all_of(graph_.operands(concat), [&](ValueId v) {
      const NodeId producer = graph_.producer(v);
      return freedom_.is_free[producer.index] && !freedom_.has_memory[v.index] &&
             !has_memory_[producer.index];
    });
  }

  // A group of its own, or a view.
  void found(NodeId n) {
    const bool is_concat = graph_.opcode(n) == Opcode::concat;
    if (is_concat ? can_join_in_memory(n) : can_be_view(n)) {
      views_.push_back(n);
      if (is_concat)
        for (ValueId v : graph_.operands(n)) has_memory_[graph_.producer(v).index] = true;
      return;
    }
    group_of_[n.index] = static_cast<uint32_t>(groups_.size());
    groups_.push_back({n});
  }

  // What is read through a view at the group's edge need not be computed.
  void take_views(std::vector<NodeId>& nodes, std::vector<NodeId>& views) {
    if (nodes.size() < 2) return;
    std::erase_if(nodes, [&](NodeId n) {
      if (graph_.opcode(n) == Opcode::concat || !can_be_view(n)) return false;
      const NodeId source = graph_.producer(graph_.operands(n)[0]);
      if (group_of_[source.index] == group_of_[n.index]) return false;
      group_of_[n.index] = kNoGroup;
      views.push_back(n);
      return true;
    });
  }

  // ---- Joining ----------------------------------------------------------------------------------

  // The group that all readers of the node are in.
  uint32_t readers_group(NodeId n) const {
    uint32_t group = kNoGroup;
    for (ValueId v : graph_.results(n)) {
      if (freedom_.has_memory[v.index]) return kNoGroup;
      for (NodeId user : users_.of(v)) {
        const uint32_t of_user = group_of_[user.index];
        if (of_user == kNoGroup || (group != kNoGroup && of_user != group)) return kNoGroup;
        group = of_user;
      }
    }
    return group;
  }

  bool join(NodeId n) {
    const Kind kind = kind_of(graph_.opcode(n));
    const uint32_t group = readers_group(n);
    if (group == kNoGroup || kind == Kind::alone || kind == Kind::window) return false;
    std::vector<NodeId>& nodes = groups_[group];
    if (nodes.size() >= kMaxNodes || !fits(n, kind, nodes)) return false;
    std::vector<NodeId> larger;  // in the graph's order
    larger.push_back(n);
    larger.insert(larger.end(), nodes.rbegin(), nodes.rend());
    const Cost before = cost_of({larger.begin() + 1, larger.end()}), after = cost_of(larger);
    if (!after.is_legal) return false;
    const double most = kind == Kind::cheap ? kCheapRepetition
                        : kind == Kind::row ? kRowRepetition
                                            : 1;
    const double own = after.work.inherent - before.work.inherent;
    if (after.work.operations - before.work.operations > most * own + 1) return false;
    nodes.push_back(n);
    group_of_[n.index] = group;
    feeds_contraction_[n.index] = feeds_contraction(n);
    return true;
  }

  bool fits(NodeId n, Kind kind, const std::vector<NodeId>& nodes) const {
    bool has_contraction = false, has_reduction = false;
    for (NodeId member : nodes) {
      const Kind of_member = kind_of(graph_.opcode(member));
      if (of_member == Kind::alone || graph_.operands(member).size() > kMaxOperands) return false;
      has_contraction = has_contraction || of_member == Kind::contraction;
      has_reduction = has_reduction || of_member == Kind::row || of_member == Kind::window;
    }
    switch (kind) {
      case Kind::contraction:
        return !has_contraction && !has_reduction && is_elementwise_behind(n, nodes);
      case Kind::row: return !has_contraction;
      case Kind::cheap: return !has_contraction || !feeds_contraction(n) || moves_simply(n);
      default: return false;
    }
  }

  // Whether the node's elements are read in place, and those made of them.
  bool is_elementwise_behind(NodeId n, const std::vector<NodeId>& nodes) const {
    std::vector<NodeId> behind{n};
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      const bool reads = std::ranges::any_of(graph_.operands(*at), [&](ValueId v) {
        return !v.is_none() && std::ranges::find(behind, graph_.producer(v)) != behind.end();
      });
      if (!reads) continue;
      if (!is_elementwise(graph_.opcode(*at))) return false;
      behind.push_back(*at);
    }
    return true;
  }

  // Whether a contraction of its group reads it, at once or by way of others.
  bool feeds_contraction(NodeId n) const {
    for (ValueId v : graph_.results(n)) {
      for (NodeId user : users_.of(v)) {
        if (kind_of(graph_.opcode(user)) == Kind::contraction || feeds_contraction_[user.index])
          return true;
      }
    }
    return false;
  }

  bool moves_simply(NodeId n) const {
    const Opcode opcode = graph_.opcode(n);
    return only_moves(opcode) && (op_def(opcode).traits.is_local || opcode == Opcode::transpose);
  }

  // ---- Work -------------------------------------------------------------------------------------

  struct Cost {
    bool is_legal = false;
    GroupWork work;
  };

  // Models repeat the same few groups, so the answer is kept by what the group looks like.
  const Cost& cost_of(std::span<const NodeId> nodes) {
    const GroupPorts ports = ports_of(graph_, users_, nodes);
    auto [at, is_new] = costs_.try_emplace(shape_of(nodes, ports));
    if (is_new) at->second = new_cost(nodes, ports);
    return at->second;
  }

  Cost new_cost(std::span<const NodeId> nodes, const GroupPorts& ports) const {
    if (!check_group(graph_, users_, nodes).ok()) return {};
    return {true, work_of(graph_, nodes, ports.outputs)};
  }

  uint64_t shape_of(std::span<const NodeId> nodes, const GroupPorts& ports) const {
    Hasher hasher;
    for (NodeId n : nodes) {
      hasher.add(graph_.op(n).hash());
      for (ValueId v : graph_.operands(n)) {
        if (v.is_none()) {
          hasher.add(-1);
          continue;
        }
        const auto inside = std::ranges::lower_bound(nodes, graph_.producer(v));
        const bool is_inside = inside != nodes.end() && *inside == graph_.producer(v);
        hasher.add(is_inside ? inside - nodes.begin() : -2);
        hasher.add(graph_.type(v).hash());
      }
    }
    for (ValueId v : ports.outputs)
      hasher.add(std::ranges::lower_bound(nodes, graph_.producer(v)) - nodes.begin());
    return hasher.value();
  }

  const Graph& graph_;
  const Users& users_;
  const FusionFreedom& freedom_;
  std::vector<std::vector<NodeId>> groups_;  // last nodes first
  std::vector<uint32_t> group_of_;           // by node
  std::vector<bool> feeds_contraction_;      // by node: in the group of the contraction
  std::vector<NodeId> views_;
  std::vector<bool> has_memory_;  // by node: a part of a concat
  std::unordered_map<uint64_t, Cost> costs_;
};

}  // namespace

Fusion fuse(const Graph& graph, const Users& users, const FusionFreedom& freedom) {
  return Fuser(graph, users, freedom).run();
}

}  // namespace hone
