#include "plan/in_place.h"

#include <algorithm>
#include <unordered_set>

#include "plan/planned.h"

namespace hone {
namespace {

constexpr size_t kMaxSearch = 2000;         // steps behind an update that are looked at,
constexpr size_t kMaxSearches = 1'000'000;  // and behind all of them

bool is_update(Opcode opcode) {
  return opcode == Opcode::dynamic_update || opcode == Opcode::scatter;
}

class Finder {
 public:
  Finder(const PlannedGraph& planned, const Users& users)
      : planned_(planned), graph_(*planned.graph), users_(users) {}

  std::vector<NodeId> run(const std::function<bool(NodeId)>& wants) {
    std::vector<NodeId> found;
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) {
      const NodeId n{i};
      if (!is_update(graph_.opcode(n)) || !is_possible(n) || !wants(n)) continue;
      if (readers_.empty()) look();
      if (add(n)) found.push_back(n);
    }
    return found;
  }

 private:
  bool is_possible(NodeId n) const {
    const uint32_t step = planned_.step_of[n.index];
    if (step == kNoStep || planned_.steps[step].in_place) return false;
    if (planned_.steps[step].nodes.size() > 1 || !check_in_place(graph_, users_, n).ok())
      return false;
    const ValueId x = graph_.operands(n)[0];
    if (planned_.concat[x.index] != NodeId{} || planned_.concat[graph_.result(n).index] != NodeId{})
      return false;
    const std::vector<ValueId>& reads = planned_.steps[step].reads;
    const NodeId producer = graph_.producer(x);
    const bool is_view =
        planned_.step_of[producer.index] == kNoStep && graph_.opcode(producer) != Opcode::parameter;
    return !is_view &&
           std::ranges::count(reads, x, [&](ValueId v) { return planned_.version[v.index]; }) == 1;
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
    }
    for (size_t i = 1; i < planned_.order.size(); ++i)
      followers_[planned_.order[i - 1]].push_back(planned_.order[i]);
  }

  bool add(NodeId n) {
    const ValueId x = graph_.operands(n)[0];
    if (const auto behind = updates_of_input(graph_, n))
      for (NodeId update : *behind)
        if (!is_in_place_[planned_.step_of[update.index]]) return false;
    if (is_tried_[x.index]) return false;  // one may be; what is behind the last is behind all
    is_tried_[x.index] = true;
    const uint32_t step = planned_.step_of[n.index];
    if (readers_[x.index].size() > 1 && is_read_behind(step, x)) return false;
    is_in_place_[step] = true;
    for (uint32_t reader : readers_[x.index])
      if (reader != step) followers_[reader].push_back(step);
    return true;
  }

  // Whether a reader of the value waits for the step; yes, if that is not found out soon.
  bool is_read_behind(uint32_t step, ValueId x) {
    const std::unordered_set<uint32_t> readers(readers_[x.index].begin(), readers_[x.index].end());
    std::vector<uint32_t> reached = {step};
    std::unordered_set<uint32_t> seen = {step};
    for (size_t i = 0; i < reached.size(); ++i) {
      if (i > kMaxSearch || ++searched_ > kMaxSearches) return true;
      if (i > 0 && readers.contains(reached[i])) return true;
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

ValueId updates_of(const Graph& graph, NodeId update) {
  return graph.operands(update)[graph.opcode(update) == Opcode::scatter ? 2 : 1];
}

std::optional<std::vector<NodeId>> updates_of_input(const Graph& graph, NodeId update) {
  const ValueId x = graph.operands(update)[0], result = graph.result(update);
  const std::span<const ValueId> outputs = graph.outputs();
  for (const Donation& donation : graph.donations()) {
    if (graph.inputs()[donation.input] != x) continue;
    ValueId v = outputs[donation.output];
    // Of an output that stands twice, the second is a copy.
    if (std::ranges::find(outputs, v) - outputs.begin() != donation.output) continue;
    std::vector<NodeId> behind;
    for (; v != result && is_update(graph.opcode(graph.producer(v)));
         v = graph.operands(behind.back())[0])
      behind.push_back(graph.producer(v));
    if (v == result) return behind;
  }
  return std::nullopt;
}

Status check_in_place(const Graph& graph, const Users& users, NodeId node) {
  if (!is_update(graph.opcode(node)))
    return bad_input("a {} changes nothing in place; dynamic_update and scatter do",
                     graph.op(node).name());
  const std::span<const ValueId> operands = graph.operands(node);
  const ValueId x = operands[0];
  const std::string_view name = graph.name(x);
  if (std::ranges::find(operands.subspan(1), x) != operands.end())
    return bad_input("it reads '%{}' for something else, too", name);
  if (users.is_output(x)) return bad_input("'%{}' is an output of the graph", name);
  const Opcode opcode = graph.opcode(graph.producer(x));
  if (opcode == Opcode::constant) return bad_input("'%{}' is a constant", name);
  if (opcode == Opcode::parameter && !updates_of_input(graph, node))
    return bad_input("'%{}' is an input of the graph", name)
        .with_hint("an input that is donated to an output may become it by updates alone");
  return {};
}

std::vector<NodeId> more_in_place(const PlannedGraph& graph, const Users& users,
                                  const std::function<bool(NodeId)>& wants) {
  return Finder(graph, users).run(wants);
}

}  // namespace hone
