#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "rewrite/fold_limits.h"
#include "rewrite/passes.h"
#include "rewrite/weights.h"

namespace hone {
namespace {

// A kernel of 1x1 becomes one of 3x3; more would make the program larger than what it saves.
constexpr int64_t kMostGrowth = 16;
constexpr int64_t kAlwaysFoldWeightBytes = 64 * 1024;
constexpr double kMaxFoldedWeightFlops = 1e9;  // the reference takes seconds for them

class Weights {
 public:
  explicit Weights(const Graph& graph) : graph_(graph), is_constant_(graph.node_count()) {
    for (NodeId n : graph.nodes()) is_constant_[n.index] = is_folded(n);
  }

  std::vector<ComputedWeight> find() const {
    std::vector<bool> is_read(graph_.value_count());  // when the graph runs
    for (ValueId v : graph_.outputs()) is_read[v.index] = true;
    std::vector<ComputedWeight> found;
    for (size_t i = graph_.node_count(); i-- > 0;) {
      const NodeId n{static_cast<uint32_t>(i)};
      if (is_constant(graph_.opcode(n))) continue;
      if (is_constant_[i]) {
        bool any = false;
        for (ValueId v : graph_.results(n)) any |= is_read[v.index];
        if (!any) continue;
        if (graph_.results(n).size() == 1 && !repeats_elements(graph_.opcode(n))) {
          ComputedWeight weight = made_of(graph_.result(n));
          if (is_worth_folding(weight)) {
            found.push_back(std::move(weight));
            continue;
          }
        }
      }
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) is_read[v.index] = true;
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  bool is_folded(NodeId n) const {
    if (is_constant(graph_.opcode(n))) return true;
    const auto operands = graph_.operands(n);
    if (operands.empty() && class_of(graph_.opcode(n)) != OpClass::generator) return false;
    if (!graph_.regions(n).empty() || has_effect(graph_, n)) return false;
    for (ValueId v : graph_.results(n))
      if (!graph_.type(v).is_static()) return false;
    return std::ranges::all_of(
        operands, [&](ValueId v) { return v.is_none() || is_constant_[graph_.producer(v).index]; });
  }

  ComputedWeight made_of(ValueId v) const {
    ComputedWeight weight{v, {}, {}};
    std::vector<NodeId> stack = {graph_.producer(v)};
    std::vector<NodeId> all = stack;
    while (!stack.empty()) {
      const NodeId n = stack.back();
      stack.pop_back();
      for (ValueId operand : graph_.operands(n)) {
        if (operand.is_none()) continue;
        const NodeId producer = graph_.producer(operand);
        if (std::ranges::find(all, producer) != all.end()) continue;
        all.push_back(producer), stack.push_back(producer);
      }
    }
    std::ranges::sort(all);
    for (NodeId n : all)
      (is_constant(graph_.opcode(n)) ? weight.constants : weight.nodes).push_back(n);
    return weight;
  }

  bool is_worth_folding(const ComputedWeight& weight) const {
    int64_t in = 0;
    for (NodeId n : weight.constants) in += graph_.type(graph_.result(n)).static_bytes();
    double work = 0, computed = 0;  // bytes in the reference
    for (NodeId n : weight.nodes) {
      for (ValueId v : graph_.results(n))
        computed += 8.0 * static_cast<double>(graph_.type(v).static_elements());
      const std::vector<Type> operands = graph_.operand_types(n);
      work += flops({graph_.op(n), operands, {}}, graph_.result_types(n));
    }
    const int64_t out = graph_.type(weight.value).static_bytes();
    return work <= kMaxFoldedWeightFlops && out <= kAlwaysFoldWeightBytes + kMostGrowth * in &&
           computed <= static_cast<double>(most_bytes_to_fold(in + out));
  }

  const Graph& graph_;
  std::vector<bool> is_constant_;  // by node
};

}  // namespace

std::vector<ComputedWeight> computed_weights(const Graph& graph) { return Weights(graph).find(); }

Result<Graph> replace_weights(const Graph& graph, const WeightValue& value) {
  const std::vector<ComputedWeight> weights = computed_weights(graph);
  auto next = weights.begin();
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    if (next == weights.end() || next->nodes.back() != n) {
      const auto inside = [&](const Graph& region) { return replace_weights(region, value); };
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, inside))));
      continue;
    }
    copy.replace(next->value, copy.target().add_constant(HONE_TRY(value(graph, *next))));
    ++next;
  }
  return remove_dead_code(copy.finish());
}

// Rounds as `rounded` evaluation does.
Result<Graph> fold_weights(const Graph& graph) {
  const auto value = [](const Graph& from, const ComputedWeight& weight) -> Result<Tensor> {
    const Graph alone = HONE_TRY(extract_subgraph(from, weight.nodes, {&weight.value, 1}));
    std::vector<Tensor> values = HONE_TRY(evaluate(alone, {}, {.numerics = Numerics::rounded}));
    return std::move(values[0]);
  };
  return replace_weights(graph, value);
}

}  // namespace hone
