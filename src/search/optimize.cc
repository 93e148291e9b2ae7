#include "search/optimize.h"

#include <algorithm>

#include "rewrite/passes.h"
#include "search/node_cost.h"

namespace hone {
namespace {

// Two outputs may have become one value, or one an input; then a reshape to the same dims has the
// name.
Result<Graph> with_names_of(Graph graph, const Graph& given) {
  std::vector<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::string name(given.name(given.outputs()[o]));
    if (graph.name(outputs[o]) == name) continue;
    bool is_taken = graph.opcode(graph.producer(outputs[o])) == Opcode::parameter;
    for (size_t other = 0; other < outputs.size(); ++other)
      is_taken |= other != o && outputs[other] == outputs[o];
    if (is_taken) {
      const auto dims = graph.type(outputs[o]).dims();
      const Op same = Op::get(Opcode::reshape, {{"dims", Dims(dims.begin(), dims.end())}});
      outputs[o] = graph.result(HONE_TRY(graph.append(same, {&outputs[o], 1})));
    }
    for (uint32_t v = 0; v < graph.value_count(); ++v)
      if (graph.name(ValueId{v}) == name) graph.set_name(ValueId{v}, "");
    graph.set_name(outputs[o], name);
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

}  // namespace

Result<Optimized> optimize(const Graph& graph, std::span<const Rule> rules, const Target& target,
                           const Cost& cost, const OptimizeOptions& options) {
  if (!graph.is_static())
    return unsupported("what is cheapest depends on the open size {}", graph.symbols()[0].name());
  GraphPrice price(target, cost, {options.threads, options.rewrite.cancel});
  const double before = HONE_TRY(price.exact(graph));
  const auto quick = [&](const Graph& candidate) { return price.quick(candidate); };
  Optimized result;
  // From where elementwise ops are nearly free to where nothing is fused.
  const NodeCost nodes[] = {node_cost(target, 0.25), node_cost(target, 0.02), node_cost(target, 1)};
  result.found = HONE_TRY(search_rewrites(graph, rules, quick, nodes, options.rewrite));
  const Graph primitive = HONE_TRY(rewritable(graph));
  result.nodes = primitive.node_count();
  result.outside = nodes_outside(primitive, rules);

  // What is cheap may be so for its stand-ins alone. Who has cancelled waits for it, too: the
  // result is what was found.
  GraphPrice last(target, cost, {options.threads, nullptr});
  Graph folded =
      HONE_TRY(with_names_of(HONE_TRY(fold_weights(std::move(result.found.graph))), graph));
  const double after = HONE_TRY(last.exact(folded));
  result.is_cheaper = after < before;
  result.graph = result.is_cheaper ? std::move(folded) : graph;
  if (!result.is_cheaper) result.found.applied.clear();
  result.found.graph = Graph();
  result.found.before = before;
  result.found.after = std::min(before, after);
  return result;
}

}  // namespace hone
