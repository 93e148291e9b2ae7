#include "rules/extract.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <queue>
#include <set>

#include "ir/op_facts.h"

namespace hone {
namespace {

using Member = EGraph::Member;

class Extraction {
 public:
  Extraction(const EGraph& egraph, const NodeCost& cost, const ExtractLimits& limits)
      : egraph_(egraph), limits_(limits) {
    find_constants();
    cost_.resize(egraph.node_capacity());
    for (uint32_t i = 0; i < cost_.size(); ++i) {
      const NodeId n{i};
      if (egraph.is_alive(n) && !is_constant_[i]) cost_[i] = cost(egraph, n);
    }
    for (ValueId v : egraph.outputs()) roots_.push_back(v);
    for (NodeId n : egraph.effects())
      for (ValueId v : egraph.results(n)) roots_.push_back(v);
    for (ValueId v : egraph.inputs()) roots_.push_back(v);
  }

  Result<Extracted> run() {
    greedy();
    improve();
    return built();
  }

 private:
  // ---- Constants --------------------------------------------------------------------------------

  // Nodes that depend on no parameter, as far as folding computes them.
  void find_constants() {
    is_constant_.assign(egraph_.node_capacity(), false);
    std::vector<bool> of_class(egraph_.class_capacity());
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < egraph_.node_capacity(); ++i) {
        const NodeId n{i};
        if (!egraph_.is_alive(n) || is_constant_[i] || !is_foldable(n)) continue;
        const auto operands = egraph_.operands(n);
        if (!std::ranges::all_of(operands,
                                 [&](ValueId v) { return v.is_none() || of_class[v.index]; }))
          continue;
        is_constant_[i] = changed = true;
        for (ValueId v : egraph_.results(n)) of_class[v.index] = true;
      }
    }
  }
  bool is_foldable(NodeId n) const {
    if (is_constant(egraph_.opcode(n))) return true;
    return !is_parameter(egraph_.opcode(n)) && egraph_.regions(n).empty() &&
           !egraph_.op(n).def().traits.has_effect;
  }

  // ---- The first choice -------------------------------------------------------------------------

  using Set = std::vector<uint64_t>;  // of nodes

  double total(const Set& nodes) const {
    double sum = 0;
    for (size_t w = 0; w < nodes.size(); ++w)
      for (uint64_t bits = nodes[w]; bits != 0; bits &= bits - 1)
        sum += cost_[w * 64 + static_cast<size_t>(std::countr_zero(bits))];
    return sum;
  }

  // A class decides when one of its nodes is the cheapest of all that have decided operands. So
  // what it needs has decided before it, and there are no cycles.
  void greedy() {
    choice_.assign(egraph_.class_capacity(), std::nullopt);
    std::vector<Set> needs(egraph_.class_capacity());
    std::vector<Set> with(egraph_.node_capacity());
    std::vector<uint32_t> waits(egraph_.node_capacity());
    std::priority_queue<std::pair<double, uint32_t>, std::vector<std::pair<double, uint32_t>>,
                        std::greater<>>
        ready;
    const auto enqueue = [&](NodeId n) {
      Set all((egraph_.node_capacity() + 63) / 64);
      for (ValueId v : egraph_.operands(n))
        for (size_t w = 0; !v.is_none() && w < all.size(); ++w) all[w] |= needs[v.index][w];
      all[n.index / 64] |= uint64_t{1} << (n.index % 64);
      ready.emplace(total(all), n.index);
      with[n.index] = std::move(all);
    };
    for (uint32_t i = 0; i < egraph_.node_capacity(); ++i) {
      const NodeId n{i};
      if (!egraph_.is_alive(n)) continue;
      waits[i] = distinct_operands(n);
      if (waits[i] == 0) enqueue(n);
    }
    while (!ready.empty()) {
      const NodeId n{ready.top().second};
      ready.pop();
      for (uint32_t r = 0; r < egraph_.results(n).size(); ++r) {
        const ValueId v = egraph_.results(n)[r];
        if (choice_[v.index]) continue;
        choice_[v.index] = Member{n, r};
        needs[v.index] = with[n.index];
        for (NodeId reader : egraph_.readers(v))
          if (--waits[reader.index] == 0) enqueue(reader);
      }
      with[n.index] = {};
    }
  }
  uint32_t distinct_operands(NodeId n) const {
    std::set<ValueId> distinct;
    for (ValueId v : egraph_.operands(n))
      if (!v.is_none()) distinct.insert(v);
    return static_cast<uint32_t>(distinct.size());
  }

  // ---- Changes of it ----------------------------------------------------------------------------

  // The nodes that the roots need, operands first; nothing if they need themselves.
  std::optional<std::vector<NodeId>> needed() const {
    enum : uint8_t { unseen, open, done };
    std::vector<uint8_t> state(egraph_.node_capacity(), unseen);
    std::vector<NodeId> order;
    std::vector<std::pair<NodeId, size_t>> stack;
    const auto enter = [&](ValueId v) {
      const NodeId n = choice_[v.index]->node;
      if (state[n.index] == open) return false;
      if (state[n.index] == unseen) state[n.index] = open, stack.emplace_back(n, 0);
      return true;
    };
    for (ValueId root : roots_) {
      if (!enter(root)) return std::nullopt;
      while (!stack.empty()) {
        auto& [n, next] = stack.back();
        const auto operands = egraph_.operands(n);
        if (next == operands.size()) {
          state[n.index] = done;
          order.push_back(n);
          stack.pop_back();
          continue;
        }
        const ValueId v = operands[next++];
        if (!v.is_none() && !enter(v)) return std::nullopt;
      }
    }
    return order;
  }

  double cost_of(const std::vector<NodeId>& nodes) const {
    double sum = 0;
    for (NodeId n : nodes) sum += cost_[n.index];
    return sum;
  }

  std::vector<bool> classes_of(const std::vector<NodeId>& nodes) const {
    std::vector<bool> used(egraph_.class_capacity());
    for (ValueId v : roots_) used[v.index] = true;
    for (NodeId n : nodes)
      for (ValueId v : egraph_.operands(n))
        if (!v.is_none()) used[v.index] = true;
    return used;
  }

  void improve() {
    std::vector<NodeId> nodes = *needed();
    least_ = cost_of(nodes);
    for (bool better = true; better && may_go_on();) {
      better = false;
      std::vector<bool> used = classes_of(nodes);
      const auto attempt = [&](const std::vector<std::pair<ValueId, Member>>& change) {
        if (!try_change(change)) return;
        better = true;
        nodes = *needed();
        used = classes_of(nodes);
      };
      for (uint32_t c = 0; c < egraph_.class_capacity() && may_go_on(); ++c) {
        const ValueId v{c};
        if (egraph_.find(v) != v) continue;
        if (used[c])
          for (const Member& member : egraph_.members(v)) attempt({{v, member}});
        else
          attempt(readers_in_use(v, used));
      }
    }
  }

  // All classes in use that could read this one, which is not.
  std::vector<std::pair<ValueId, Member>> readers_in_use(ValueId v,
                                                         const std::vector<bool>& used) const {
    std::vector<std::pair<ValueId, Member>> change;
    for (NodeId n : egraph_.readers(v))
      for (uint32_t r = 0; r < egraph_.results(n).size(); ++r) {
        const ValueId result = egraph_.results(n)[r];
        if (used[result.index]) change.push_back({result, {n, r}});
      }
    return change;
  }

  bool try_change(const std::vector<std::pair<ValueId, Member>>& change) {
    std::vector<std::pair<ValueId, std::optional<Member>>> before;
    for (const auto& [v, member] : change) {
      before.emplace_back(v, choice_[v.index]);
      choice_[v.index] = member;
    }
    const std::optional<std::vector<NodeId>> nodes = needed();
    constexpr double kLess = 1 - 1e-9;
    if (nodes && cost_of(*nodes) < least_ * kLess) {
      least_ = cost_of(*nodes);
      return true;
    }
    for (auto at = before.rbegin(); at != before.rend(); ++at)
      choice_[at->first.index] = at->second;
    return false;
  }

  bool may_go_on() const {
    if (limits_.cancel != nullptr && limits_.cancel->cancelled()) return false;
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - began_).count() < limits_.seconds;
  }

  // ---- The graph --------------------------------------------------------------------------------

  Result<Extracted> built() const {
    Extracted out{.graph = Graph(egraph_.graph_name()), .cost = least_, .origins = {}};
    std::vector<ValueId> map(egraph_.class_capacity());
    for (ValueId v : egraph_.inputs())
      map[v.index] = out.graph.add_parameter(egraph_.type(v), egraph_.name(v));
    const std::vector<NodeId> nodes = *needed();
    for (NodeId n : nodes) {
      if (is_parameter(egraph_.opcode(n))) continue;
      std::vector<ValueId> results;
      if (is_constant(egraph_.opcode(n))) {
        results.push_back(out.graph.add_constant(egraph_.constant(n)));
      } else {
        std::vector<ValueId> operands;
        for (ValueId v : egraph_.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
        const auto regions = egraph_.regions(n);
        const NodeId made = HONE_TRY(out.graph.append(
            egraph_.op(n), operands, std::vector<GraphRef>(regions.begin(), regions.end())));
        for (ValueId v : out.graph.results(made)) results.push_back(v);
      }
      for (uint32_t r = 0; r < results.size(); ++r) take_result(n, r, results[r], map, out.graph);
      if (egraph_.origin(n) != EGraph::kSource) out.origins.push_back(egraph_.origin(n));
    }
    std::vector<ValueId> outputs;
    for (ValueId v : egraph_.outputs()) outputs.push_back(map[v.index]);
    out.graph.set_outputs(std::move(outputs));
    for (const Donation& each : egraph_.donations())
      out.graph.add_donation(each.input, each.output);
    const std::vector<bool> used = classes_of(nodes);
    for (const EGraph::Shortcut& each : egraph_.shortcuts())
      if (used[egraph_.find(each.result).index]) out.origins.push_back(each.origin);
    std::ranges::sort(out.origins);
    const auto [first, last] = std::ranges::unique(out.origins);
    out.origins.erase(first, last);
    return out;
  }

  // A node may have a result that its class takes from another one.
  void take_result(NodeId n, uint32_t result, ValueId made, std::vector<ValueId>& map,
                   Graph& graph) const {
    const ValueId v = egraph_.results(n)[result];
    const std::optional<Member>& chosen = choice_[v.index];
    if (!chosen || chosen->node != n || chosen->result != result) return;
    map[v.index] = made;
    graph.set_name(made, egraph_.name(v));
  }

  const EGraph& egraph_;
  const ExtractLimits limits_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<bool> is_constant_;  // by node
  std::vector<double> cost_;       // by node
  std::vector<ValueId> roots_;
  std::vector<std::optional<Member>> choice_;  // by class
  double least_ = 0;
};

}  // namespace

Result<Extracted> extract(const EGraph& egraph, const NodeCost& cost, const ExtractLimits& limits) {
  HONE_CHECK(egraph.is_rebuilt(), "what is extracted is rebuilt");
  return Extraction(egraph, cost, limits).run();
}

}  // namespace hone
