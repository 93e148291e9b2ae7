#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ir/op_def.h"
#include "kernel/group_work.h"
#include "kernel/kernel_body.h"
#include "kernel/stages.h"

namespace hone {

namespace {

Status check_alone(GraphView graph, NodeId node) {
  const Opcode opcode = graph.opcode(node);
  if (!has_access({graph.op(node), graph.operand_types(node)}))
    return unsupported("{} cannot be a kernel", name(opcode));
  return {};
}

bool stands_in(GraphView graph, std::span<const NodeId> nodes, NodeId node) {
  return std::ranges::binary_search(nodes, graph.position(node), {},
                                    [&](NodeId n) { return graph.position(n); });
}

// Looks for a node outside that reads the group and is read by it: it would have to run in the
// group's middle. From both ends at once, each edge a step, until one end knows no further.
class WayBack {
 public:
  WayBack(GraphView graph, UsersView users, std::span<const NodeId> nodes)
      : graph_(graph),
        users_(users),
        nodes_(nodes),
        first_(graph.position(nodes.front())),
        last_(graph.position(nodes.back())) {
    for (NodeId n : nodes) {
      follow(n);
      precede(n);
    }
  }

  bool exists() {
    while (!is_found_ && !behind_.open.empty() && !before_.open.empty()) {
      Side& side = behind_.steps <= before_.steps ? behind_ : before_;
      const NodeId next = side.open.back();
      side.open.pop_back();
      &side == &behind_ ? follow(next) : precede(next);
    }
    return is_found_;
  }

 private:
  struct Side {
    std::vector<NodeId> open;
    std::unordered_set<uint32_t> seen = {};
    size_t steps = 0;
  };

  void follow(NodeId n) {
    for (ValueId v : graph_.results(n))
      for (NodeId user : users_.of(v)) visit(n, user, behind_);
  }
  void precede(NodeId n) {
    for (ValueId v : graph_.operands(n))
      if (!v.is_none()) visit(n, graph_.producer(v), before_);
  }
  void visit(NodeId from, NodeId to, Side& side) {
    ++side.steps;
    const uint64_t position = graph_.position(to);
    if (is_inside(to)) {
      is_found_ = is_found_ || !is_inside(from);
    } else if (first_ < position && position < last_ && side.seen.insert(to.index).second) {
      side.open.push_back(to);
    }
  }

  bool is_inside(NodeId n) const { return stands_in(graph_, nodes_, n); }

  const GraphView graph_;
  const UsersView users_;
  const std::span<const NodeId> nodes_;
  const uint64_t first_, last_;  // positions
  Side behind_, before_;
  bool is_found_ = false;
};

// From the first to the last of the group.
std::vector<NodeId> stretch(GraphView graph, std::span<const NodeId> nodes) {
  std::vector<NodeId> all;
  if (graph.node_count() == graph.graph().node_count()) {  // no copies
    for (NodeId n = nodes.front(); n <= nodes.back(); ++n.index) all.push_back(n);
    return all;
  }
  const uint64_t first = graph.position(nodes.front()), last = graph.position(nodes.back());
  for (NodeId n : graph.nodes())
    if (first <= graph.position(n) && graph.position(n) <= last) all.push_back(n);
  return all;
}

// One that reads, and one that is read, of the first way back that there is.
Error way_back(GraphView graph, std::span<const NodeId> nodes) {
  std::vector<bool> follows(graph.node_count());  // is in the group, or depends on it
  for (NodeId n : stretch(graph, nodes)) {
    const bool is_inside = stands_in(graph, nodes, n);
    follows[n.index] = is_inside;
    for (ValueId operand : graph.operands(n)) {
      if (operand.is_none()) continue;
      const NodeId producer = graph.producer(operand);
      if (!follows[producer.index]) continue;
      if (is_inside && !stands_in(graph, nodes, producer))
        return unsupported("{} reads {}, which is not in the group, but depends on it",
                           graph.describe(n), graph.describe(producer));
      follows[n.index] = true;
    }
  }
  HONE_CHECK(false, "no way leads back");
}

}  // namespace

Status check_member(GraphView graph, NodeId node) {
  HONE_TRY(check_alone(graph, node));
  const Opcode opcode = graph.opcode(node);
  if (!is_fusible(opcode)) return unsupported("{} is a kernel of its own", name(opcode));
  // `select` throws away values that are computed where no guard holds; it does not know the
  // guards.
  if (!op_def(opcode).traits.is_piecewise) return {};
  const DType dtype = graph.type(graph.operands(node)[0]).dtype();
  if (!is_storage_only(dtype)) return {};
  return unsupported("{} of {} is a kernel of its own", name(opcode), name(dtype));
}

Status check_outputs(GraphView graph, std::span<const ValueId> outputs) {
  if (outputs.empty()) return bad_input("nothing reads what the group computes");
  const Type first = graph.type(outputs[0]);
  for (ValueId output : outputs)
    if (!std::ranges::equal(graph.type(output).dims(), first.dims()))
      return unsupported("{} is {} and {} is {}: one kernel writes tensors of the same dims",
                         graph.label(outputs[0]), first.to_string(), graph.label(output),
                         graph.type(output).to_string());
  return {};
}

namespace {

Status check_members(GraphView graph, UsersView users, std::span<const NodeId> nodes) {
  if (nodes.empty()) return bad_input("a group must have nodes");
  if (nodes.size() > kMaxGroupNodes)
    return over_limit("the group has {} nodes, more than {}", nodes.size(), kMaxGroupNodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0 && graph.position(nodes[i - 1]) >= graph.position(nodes[i]))
      return bad_input("the nodes of a group are not in the graph's order");
    Status good = nodes.size() == 1 ? check_alone(graph, nodes[i]) : check_member(graph, nodes[i]);
    if (!good.ok()) return std::move(good).error().within(graph.describe(nodes[i]));
  }
  if (nodes.size() == 1) return {};
  return check_outputs(graph, ports_of(graph, users, nodes).outputs);
}

Status check_work_of_group(GraphView graph, UsersView users, std::span<const NodeId> nodes) {
  if (nodes.size() == 1) return {};
  const KernelBody body = body_of(graph, users, nodes, {});
  Status alone = check_work(work_of(body));
  if (alone.ok() || simplest_chain(body).ok()) return {};
  return alone;
}

}  // namespace

Status check_group(GraphView graph, UsersView users, std::span<const NodeId> nodes) {
  HONE_TRY(check_members(graph, users, nodes));
  if (nodes.size() > 1 && WayBack(graph, users, nodes).exists()) return way_back(graph, nodes);
  return check_work_of_group(graph, users, nodes);
}

Status check_group_alone(GraphView graph, UsersView users, std::span<const NodeId> nodes) {
  HONE_TRY(check_members(graph, users, nodes));
  return check_work_of_group(graph, users, nodes);
}

Status check_group(const Graph& graph, std::span<const NodeId> nodes) {
  return check_group(graph, Users(graph), nodes);
}

}  // namespace hone
