#include "plan/in_place.h"

#include <algorithm>
#include <unordered_set>

#include "base/planted.h"
#include "ir/op_facts.h"
#include "kernel/group_work.h"
#include "plan/planned.h"

namespace hone {
namespace {

constexpr size_t kMaxSearch = 2000;         // steps behind an update that are looked at,
constexpr size_t kMaxSearches = 1'000'000;  // and behind all of them

class Finder {
 public:
  Finder(const PlannedGraph& planned, const Users& users)
      : planned_(planned), graph_(*planned.graph), users_(users) {}

  std::vector<NodeId> run(const std::function<bool(NodeId)>& wants) {
    std::vector<NodeId> found;
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) {
      const NodeId n{i};
      if (!is_possible(n) || !wants(n)) continue;
      if (readers_.empty()) look();
      if (add(n)) found.push_back(n);
    }
    return found;
  }

 private:
  bool is_possible(NodeId n) const {
    // Most nodes are neither, which is found out soon.
    const bool is_output = graph_.results(n).size() > 0 && users_.is_output(graph_.result(n));
    if (!is_update(graph_.opcode(n)) && !is_output) return false;
    if (!check_in_place(graph_, users_, n).ok() || !check_in_place(planned_, users_, n).ok())
      return false;
    const Step& step = planned_.steps[planned_.step_of[n.index]];
    return !step.in_place &&
           std::ranges::find(step.donors, graph_.result(n), &Donor::output) == step.donors.end();
  }

  // Who reads what, and which steps wait for a step.
  void look() {
    readers_.resize(graph_.value_count());
    followers_.resize(planned_.steps.size());
    is_in_place_.resize(planned_.steps.size());
    is_tried_.resize(graph_.value_count());
    for (uint32_t s = 0; s < planned_.steps.size(); ++s) {
      for (ValueId v : planned_.steps[s].reads)
        readers_[planned_.version[v.index].index].push_back(s);
      for (uint32_t needed : planned_.needs(s)) followers_[needed].push_back(s);
      is_in_place_[s] = planned_.steps[s].in_place;
      if (is_in_place_[s]) is_tried_[planned_.steps[s].reads[0].index] = true;
      for (const Donor& donor : planned_.steps[s].donors) is_tried_[donor.input.index] = true;
    }
    for (size_t i = 1; i < planned_.order.size(); ++i)
      followers_[planned_.order[i - 1]].push_back(planned_.order[i]);
  }

  bool add(NodeId n) {
    const ValueId x = changed_by(graph_, n);
    if (const auto behind = updates_of_input(graph_, n))
      for (NodeId update : *behind)
        if (!is_in_place_[planned_.step_of[update.index]]) return false;
    if (is_tried_[x.index]) return false;  // one may be; what is behind the last is behind all
    is_tried_[x.index] = true;
    const uint32_t step = planned_.step_of[n.index];
    std::vector<uint32_t> others = readers_[x.index];
    std::erase(others, step);
    if (!others.empty() && is_read_behind(step, others)) return false;
    is_in_place_[step] = true;
    for (uint32_t reader : others) followers_[reader].push_back(step);
    return true;
  }

  // True if one of the others waits for the step; yes, if that is not found out soon.
  bool is_read_behind(uint32_t step, const std::vector<uint32_t>& others) {
    const std::unordered_set<uint32_t> readers(others.begin(), others.end());
    std::vector<uint32_t> reached = {step};
    std::unordered_set<uint32_t> seen = {step};
    for (size_t i = 0; i < reached.size(); ++i) {
      if (i > kMaxSearch || ++searched_ > kMaxSearches) return true;
      if (readers.contains(reached[i])) return true;
      for (uint32_t next : followers_[reached[i]])
        if (seen.insert(next).second) reached.push_back(next);
    }
    return false;
  }

  const PlannedGraph& planned_;
  const Graph& graph_;
  const Users& users_;
  std::vector<std::vector<uint32_t>> readers_;    // by version
  std::vector<std::vector<uint32_t>> followers_;  // by step
  std::vector<bool> is_in_place_;                 // by step
  std::vector<bool> is_tried_;                    // by value: whether an update of it is in place
  size_t searched_ = 0;                           // steps
};

}  // namespace

ValueId changed_by(GraphView graph, NodeId node) {
  if (is_update(graph.opcode(node))) return graph.operands(node)[0];
  if (graph.donations().empty() || graph.results(node).size() == 0) return {};
  const ValueId result = graph.result(node);
  const auto first = std::ranges::find(graph.outputs(), result) - graph.outputs().begin();
  const auto donation = std::ranges::find(graph.donations(), first, &Donation::output);
  return donation == graph.donations().end() ? ValueId() : graph.inputs()[donation->input];
}

std::optional<std::vector<NodeId>> updates_of_input(GraphView graph, NodeId update) {
  if (!is_update(graph.opcode(update))) return std::nullopt;
  const ValueId x = graph.operands(update)[0], result = graph.result(update);
  const std::span<const ValueId> outputs = graph.outputs();
  for (const Donation& donation : graph.donations()) {
    if (graph.inputs()[donation.input] != x) continue;
    ValueId v = outputs[donation.output];
    // If an output stands twice, the second is a copy.
    if (std::ranges::find(outputs, v) - outputs.begin() != donation.output) continue;
    std::vector<NodeId> behind;
    for (; v != result && is_update(graph.opcode(graph.producer(v)));
         v = graph.operands(behind.back())[0])
      behind.push_back(graph.producer(v));
    if (v == result) return behind;
  }
  return std::nullopt;
}

Status check_in_place(GraphView graph, UsersView users, NodeId node) {
  const bool updates = is_update(graph.opcode(node));
  const ValueId x = changed_by(graph, node);
  if (x.is_none() || is_parameter(graph.opcode(node)))
    return bad_input("a {} changes nothing in place", graph.op(node).name())
        .with_hint(
            "dynamic_update and scatter do, and so does the node of an output that an input is "
            "donated to");
  const std::string_view name = graph.name(x);
  if (users.is_output(x)) return bad_input("'%{}' is an output of the graph", name);
  if (!updates) return check_elementwise(graph, std::span(&node, 1), x);
  const std::span<const ValueId> operands = graph.operands(node);
  if (std::ranges::find(operands.subspan(1), x) != operands.end())
    return bad_input("it reads '%{}' for something else, too", name);
  const Opcode opcode = graph.opcode(graph.producer(x));
  if (is_constant(opcode)) return bad_input("'%{}' is a constant", name);
  if (is_parameter(opcode) && !updates_of_input(graph, node))
    return bad_input("'%{}' is an input of the graph", name)
        .with_hint("only updates may lead from a donated input to its output");
  return {};
}

Status check_in_place(const PlannedGraph& planned, UsersView users, NodeId node) {
  const GraphView graph = planned.view();
  const ValueId x = changed_by(graph, node), result = graph.result(node);
  const uint32_t s = planned.step_of[node.index];
  if (s == kNoStep || !planned.steps[s].is_kernel)
    return bad_input("no kernel computes '%{}'", graph.name(result));
  const Step& step = planned.steps[s];
  const NodeId producer = graph.producer(x);
  if (planned.step_of[producer.index] == kNoStep && !is_parameter(graph.opcode(producer)))
    return bad_input("'%{}' is a view", graph.name(x));
  for (ValueId v : {x, result})
    if (planned.concat[v.index] != NodeId{})
      return bad_input("'%{}' lies in a concat", graph.name(v));
  for (ValueId v : step.reads)
    if (v != x && planned.version[v.index] == x)
      return bad_input("it reads '%{}', which lies in '%{}', too", graph.name(v), graph.name(x));
  if (!is_update(graph.opcode(node))) {
    HONE_TRY(check_elementwise(graph, step.nodes, x));
    if (step.nodes.size() == 1) return {};
    return check_work(work_of(body_of(graph, users, step.nodes, {})));  // a chain is not in place
  }
  if (step.nodes.size() > 1) return bad_input("@{} computes other nodes, too", step.name);
  return {};
}

std::vector<NodeId> more_in_place(const PlannedGraph& graph, const Users& users,
                                  const std::function<bool(NodeId)>& wants) {
  return Finder(graph, users).run(wants);
}

}  // namespace hone
