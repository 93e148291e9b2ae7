#include "planner/groups.h"

#include <algorithm>
#include <optional>

#include "ir/op_facts.h"
#include "kernel/group_work.h"
#include "kernel/kernel_body.h"
#include "plan/view.h"
#include "planner/steps.h"

namespace hone {
namespace {

constexpr size_t kMaxNodes = 64;
constexpr size_t kMaxUnpackingNodes = 128;  // of constants alone: formulas of packed weights
constexpr size_t kMaxOperands = 64;         // of one node
// How often elements may be computed, at most.
constexpr double kCheapRepetition = 2;
constexpr double kRowRepetition = 4;  // counted by paths that lead to the same row
constexpr uint32_t kNoGroup = UINT32_MAX;

enum class Kind : uint8_t { cheap, row, contraction, window, alone };

Kind kind_of(Opcode opcode) {
  switch (class_of(opcode)) {
    case OpClass::contraction: return Kind::contraction;
    case OpClass::reduction:
    case OpClass::segmented: return Kind::row;
    case OpClass::window: return Kind::window;
    default: return is_fusible(opcode) ? Kind::cheap : Kind::alone;
  }
}

// A group that grows around a node that no group took, its last.
struct OpenGroup {
  std::vector<NodeId> nodes;  // the last first
  std::vector<ValueId> outputs;
  std::optional<GrowingWork> work;  // once a second node asks to join
  bool has_contraction = false;
  bool has_reduction = false;
  bool is_full = false;  // none may join, whatever it is
};

class Fuser {
 public:
  Fuser(const Graph& graph, const Users& users, const FusionFreedom& freedom,
        const Heuristics& heuristics)
      : graph_(graph),
        users_(users),
        freedom_(freedom),
        on_(heuristics),
        group_of_(graph.node_count(), kNoGroup),
        feeds_contraction_(graph.node_count()),
        is_elementwise_on_(graph.node_count()),
        is_joined_(graph.value_count()),
        is_of_constants_(graph.node_count()) {
    for (NodeId n : graph.nodes()) {
      const std::span<const ValueId> operands = graph.operands(n);
      const bool is_source =
          is_constant(graph.opcode(n)) || class_of(graph.opcode(n)) == OpClass::generator;
      is_of_constants_[n.index] =
          operands.empty() ? is_source : std::ranges::all_of(operands, [&](ValueId v) {
            return v.is_none() || is_of_constants_[graph.producer(v).index];
          });
    }
  }

  Fusion run() {
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;)
      if (const NodeId n{i}; freedom_.is_free[i] && !join(n)) found(n);
    Fusion fusion = {.groups = {}, .views = {}, .counted = counted_};
    for (OpenGroup& group : groups_) {
      std::ranges::reverse(group.nodes);
      take_views(group.nodes, fusion.views);
      if (!group.nodes.empty()) fusion.groups.push_back(std::move(group.nodes));
    }
    fusion.views.insert(fusion.views.end(), views_.begin(), views_.end());
    std::ranges::sort(fusion.groups, {}, [](const auto& nodes) { return nodes.back(); });
    return fusion;
  }

 private:
  bool can_be_view(NodeId n) const {
    return op_def(graph_.opcode(n)).traits.may_be_view && freedom_.may_be_view[n.index] &&
           !joins_operands(graph_.opcode(n)) && !is_joined_[graph_.result(n).index] &&
           check_row_major_view(graph_, users_, n).ok();
  }

  // True if the operands of a concat of images lie side by side in it as convs may want them.
  bool joins_images(NodeId n) const {
    if (!joins_operands(graph_.opcode(n)) || !freedom_.may_be_view[n.index]) return false;
    const ValueId result = graph_.result(n);
    const Type type = graph_.type(result);
    if (type.rank() < 3 || type.rank() > 5 || !type.is_static() || users_.is_output(result) ||
        graph_.op(n).integer("axis") != 1)
      return false;
    for (ValueId v : graph_.operands(n))
      if (!freedom_.is_free[graph_.producer(v).index] || freedom_.has_memory[v.index] ||
          is_joined_[v.index] || !graph_.type(v).dim(1).divisible_by(freedom_.block))
        return false;
    return check_row_major_view(graph_, users_, n).ok();
  }

  // A group of its own, or a view.
  void found(NodeId n) {
    if (joins_images(n)) {
      views_.push_back(n);
      for (ValueId v : graph_.operands(n)) is_joined_[v.index] = true;
      return;
    }
    if (can_be_view(n)) {
      views_.push_back(n);
      return;
    }
    const auto group = static_cast<uint32_t>(groups_.size());
    std::vector<ValueId>& outputs = groups_.emplace_back().outputs;
    for (ValueId v : graph_.results(n))
      if (users_.is_output(v) || !users_.of(v).empty()) outputs.push_back(v);
    groups_[group].is_full = !check_outputs(graph_, outputs).ok() || !check_member(graph_, n).ok();
    add(n, group);
  }

  void add(NodeId n, uint32_t index) {
    OpenGroup& group = groups_[index];
    const Kind kind = kind_of(graph_.opcode(n));
    group.nodes.push_back(n);
    group.has_contraction = group.has_contraction || kind == Kind::contraction;
    group.has_reduction = group.has_reduction || kind == Kind::row || kind == Kind::window;
    const size_t most = is_of_constants_[group.nodes[0].index] ? kMaxUnpackingNodes : kMaxNodes;
    group.is_full =
        group.is_full || group.nodes.size() >= most || graph_.operands(n).size() > kMaxOperands;
    feeds_contraction_[n.index] = group.nodes.size() > 1 && feeds_contraction(n);
    is_elementwise_on_[n.index] =
        is_elementwise(graph_.opcode(n)) && (group.nodes.size() == 1 || is_elementwise_behind(n));
    group_of_[n.index] = index;
  }

  // A value that is read through a view at the group's edge need not be computed.
  void take_views(std::vector<NodeId>& nodes, std::vector<NodeId>& views) {
    if (nodes.size() < 2) return;
    std::erase_if(nodes, [&](NodeId n) {
      if (!can_be_view(n)) return false;
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

  // Since all readers are in the group, no path leaves it and comes back.
  bool join(NodeId n) {
    const Kind kind = kind_of(graph_.opcode(n));
    if (kind == Kind::alone || kind == Kind::window) return false;
    const uint32_t group = readers_group(n);
    if (group == kNoGroup || groups_[group].is_full || !fits(n, kind, groups_[group]) ||
        !check_member(graph_, n).ok() || !takes_little(n, kind, groups_[group]))
      return false;
    add(n, group);
    return true;
  }

  bool fits(NodeId n, Kind kind, const OpenGroup& group) const {
    switch (kind) {
      case Kind::contraction: return on_.fuse_epilogues && takes_contraction(n, group);
      case Kind::row: return on_.fuse_rows && !group.has_contraction;
      case Kind::cheap:
        if (group.has_contraction && feeds_contraction(n))
          return on_.fuse_operands && moves_simply(n);
        if (on_.fuse_epilogues && !takes_contraction(n, group) && narrows_contraction(n))
          return false;
        return on_.fuse_elementwise;
      default: return false;
    }
  }

  // True if it could be one, or stand behind one.
  bool takes_contraction(NodeId n, const OpenGroup& group) const {
    return !group.has_contraction && !group.has_reduction && is_elementwise_behind(n);
  }

  // True if the node's elements are made of those of a contraction that nothing else needs, and
  // take less memory. Then they are what that contraction's kernel should write.
  bool narrows_contraction(NodeId n) const {
    const int width = bits(graph_.type(graph_.result(n)).dtype());
    const std::span<const ValueId> operands = graph_.operands(n);
    if (operands.size() != 1 || width >= bits(graph_.type(operands[0]).dtype())) return false;
    std::vector<NodeId> open = {graph_.producer(operands[0])};
    for (size_t i = 0; i < open.size() && open.size() <= kMaxNodes; ++i) {
      const NodeId before = open[i];
      if (users_.of(graph_.result(before)).size() != 1) continue;
      if (kind_of(graph_.opcode(before)) == Kind::contraction)
        return width < bits(graph_.type(graph_.result(before)).dtype());
      if (!is_elementwise(graph_.opcode(before))) continue;
      for (ValueId operand : graph_.operands(before)) open.push_back(graph_.producer(operand));
    }
    return false;
  }

  // True if the node's elements are read in place, and those made of them.
  bool is_elementwise_behind(NodeId n) const {
    for (ValueId v : graph_.results(n))
      for (NodeId user : users_.of(v))
        if (!is_elementwise_on_[user.index]) return false;
    return true;
  }

  // True if a contraction of its group reads it, at once or by way of others.
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
    return only_moves(opcode) && (op_def(opcode).traits.is_local || permutes_dims(opcode));
  }

  // ---- Work -------------------------------------------------------------------------------------

  // True if the group computes little again with the node, which it counts if so.
  bool takes_little(NodeId n, Kind kind, OpenGroup& group) {
    if (!group.work) {
      group.work.emplace(graph_);
      for (ValueId v : group.outputs) group.work->add_output(v);
      group.work->add(group.nodes[0]);
      ++counted_;
    }
    for (ValueId v : graph_.results(n)) {
      if (!users_.is_output(v)) continue;
      if (const ValueId both[] = {group.outputs[0], v}; !check_outputs(graph_, both).ok())
        return false;
      group.work->add_output(v);
    }
    GrowingWork& work = *group.work;
    ++counted_;
    const GrowingWork::Mark before = work.mark();
    work.add(n);
    const GroupWork after = work.work();
    const double most = kind == Kind::cheap ? (on_.repeat_cheap ? kCheapRepetition : 1)
                        : kind == Kind::row ? (on_.repeat_rows ? kRowRepetition : 1)
                                            : 1;
    const double own = after.inherent - before.work.inherent;
    const bool is_little =
        (after.operations - before.work.operations <= most * own + 1 || is_one_number(n)) &&
        (check_work(after).ok() || is_chain_with(n, group));
    if (!is_little) work.return_to(before);
    return is_little;
  }

  // Kernels have the number in their code, however often they need it.
  bool is_one_number(NodeId n) const {
    if (!repeats_elements(graph_.opcode(n))) return false;
    const ValueId repeated = graph_.operands(n)[0];
    return is_constant(graph_.opcode(graph_.producer(repeated))) &&
           graph_.type(repeated).static_elements() == 1;
  }

  // Work that is too much at one point may be done in stages.
  bool is_chain_with(NodeId n, const OpenGroup& group) {
    counted_ += group.nodes.size() + 1;
    std::vector<NodeId> nodes = {n};  // in the graph's order
    nodes.insert(nodes.end(), group.nodes.rbegin(), group.nodes.rend());
    return check_group(graph_, users_, nodes).ok();
  }

  const Graph& graph_;
  const Users& users_;
  const FusionFreedom& freedom_;
  const Heuristics& on_;
  std::vector<OpenGroup> groups_;
  std::vector<uint32_t> group_of_;       // by node
  std::vector<bool> feeds_contraction_;  // by node: in the group of the contraction
  std::vector<bool> is_elementwise_on_;  // by node: it is, and so is all behind it in its group
  std::vector<bool> is_joined_;          // by value: in a concat that is a view
  std::vector<bool> is_of_constants_;    // by node: constants and places alone decide it
  std::vector<NodeId> views_;
  size_t counted_ = 0;  // as Fusion::counted
};

}  // namespace

Fusion fuse(const Graph& graph, const Users& users, const FusionFreedom& freedom,
            const Heuristics& heuristics) {
  return Fuser(graph, users, freedom, heuristics).run();
}

Status form_groups(PlanningFrame& frame) {
  const FusionFreedom& freedom = frame.freedom();
  if (frame.on().groups && frame.take(fuse(frame.graph(), frame.users(), freedom, frame.on())))
    return {};
  // Updates that are said to be in place may not go with groups of several nodes.
  Fusion alone;
  for (NodeId n : frame.graph().nodes())
    if (freedom.is_free[n.index]) alone.groups.push_back({n});
  return frame.form(alone);
}

}  // namespace hone
