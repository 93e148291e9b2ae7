#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/loop_state.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// Tells, by operand, which operands of the node reach its regions as the same parameter in every
// run. These are the arguments of an if or a call, and the state of a loop that its body hands on.
// `states`: how many of them are also results.
struct Unchanged {
  std::vector<bool> operands;
  size_t first_argument = 0;  // the operand that is parameter 0
  size_t states = 0;
};

Unchanged unchanged(const Graph& graph, NodeId n) {
  const size_t count = graph.operands(n).size();
  Unchanged found;
  found.operands = unchanged_state(graph, n);
  found.states = found.operands.size();
  const bool is_if = is_branch(graph.opcode(n));
  if (is_if || graph.opcode(n) == Opcode::call) found.operands.assign(count, true);
  if (is_if) {
    found.operands[0] = false;
    found.first_argument = 1;
  }
  found.operands.resize(count, false);
  return found;
}

// A value that a loop never changes is the same after it.
Result<Graph> without_unchanged_results(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    const NodeId made = HONE_TRY(copy.node(
        n, graph.op(n), HONE_TRY(transform_regions(graph, n, without_unchanged_results))));
    const Unchanged same = unchanged(copy.target(), made);
    for (size_t i = 0; i < same.states; ++i)
      if (same.operands[i]) copy.replace(graph.result(n, i), copy(graph.operands(n)[i]));
  }
  return copy.finish();
}

// The region with the values instead of the parameters that have one.
Result<GraphRef> bound(const Graph& region, std::span<const std::optional<Tensor>> values,
                       size_t states) {
  GraphCopy copy(region);
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i]) HONE_TRY(copy.node(region.producer(region.inputs()[i])));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]) copy.replace(region.inputs()[i], copy.target().add_constant(*values[i]));
  for (NodeId n : region.nodes())
    if (!is_parameter(region.opcode(n))) HONE_TRY(copy.node(n));
  Graph graph = copy.finish();
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (i >= states || !values[i]) outputs.push_back(graph.outputs()[i]);
  graph.set_outputs(std::move(outputs));
  return std::make_shared<const Graph>(std::move(graph));
}

class Sinking {
 public:
  explicit Sinking(const Graph& graph) : graph_(graph), copy_(graph) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) HONE_TRY(node(n));
    return copy_.finish();
  }

 private:
  static Result<Graph> sunk(const Graph& graph) { return Sinking(graph).run(); }

  // Per parameter of the node's regions: the constant that it always is.
  std::vector<std::optional<Tensor>> values_of(NodeId n, const Unchanged& same) const {
    std::vector<std::optional<Tensor>> values;
    for (const GraphRef& region : graph_.regions(n))
      if (!region->donations().empty()) return values;
    const std::span<const ValueId> operands = graph_.operands(n);
    for (size_t i = same.first_argument; i < operands.size(); ++i) {
      const NodeId producer = graph_.producer(operands[i]);
      const bool is_sunk = same.operands[i] && is_constant(graph_.opcode(producer));
      values.push_back(is_sunk ? std::optional(graph_.constant(producer)) : std::nullopt);
    }
    return values;
  }

  Status node(NodeId n) {
    const Unchanged same = unchanged(graph_, n);
    const auto values = values_of(n, same);
    const auto sunk_count = std::ranges::count_if(values, [](const auto& v) { return !!v; });
    if (sunk_count == 0) {
      HONE_TRY(copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, sunk))));
      return {};
    }
    std::vector<GraphRef> regions;
    for (const GraphRef& region : graph_.regions(n)) {
      const bool is_body = region == graph_.regions(n).back();
      const GraphRef inner = HONE_TRY(bound(*region, values, is_body ? same.states : 0));
      regions.push_back(std::make_shared<const Graph>(HONE_TRY(sunk(*inner))));
    }
    std::vector<ValueId> operands;
    for (size_t i = 0; i < graph_.operands(n).size(); ++i)
      if (i < same.first_argument || !values[i - same.first_argument])
        operands.push_back(copy_(graph_.operands(n)[i]));
    Op op = graph_.op(n);
    if (is_scan(op.opcode()))
      op = Op::get(Opcode::scan, {{"carried", static_cast<int64_t>(same.states) - sunk_count},
                                  {"reverse", op.flag("reverse")},
                                  {"length", op.dims("length")}});
    const NodeId made = HONE_TRY(copy_.target().append(op, operands, std::move(regions)));
    size_t result = 0;
    for (size_t i = 0; i < graph_.results(n).size(); ++i) {
      const bool is_sunk = i < same.states && values[i];
      copy_.replace(graph_.result(n, i),
                    is_sunk ? copy_(graph_.operands(n)[i]) : copy_.target().result(made, result++));
    }
    return {};
  }

  const Graph& graph_;
  GraphCopy copy_;
};

}  // namespace

Result<Graph> sink_constants(const Graph& graph) {
  return Sinking(HONE_TRY(without_unchanged_results(graph))).run();
}

}  // namespace hone
