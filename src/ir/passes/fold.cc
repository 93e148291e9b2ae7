#include <algorithm>

#include "ir/graph_copy.h"
#include "ir/passes/passes.h"
#include "ir/reference/evaluate.h"

namespace hone {
namespace {

// A folded result may be this large even if its operands are smaller; beyond, folding would make
// the program larger than the computation it saves.
constexpr int64_t kAlwaysFoldBytes = 64 * 1024;

// Folding rounds as `rounded` evaluation does, so that it never changes what that gives.

// A loop that takes longer, or does not end, is left to the program.
constexpr int64_t kMaxFoldedIterations = 10000;

bool is_worth_folding(const Graph& graph, NodeId n) {
  if (graph.operands(n).empty() || has_effect(graph, n)) return false;
  int64_t in = 0, out = 0;
  for (ValueId v : graph.operands(n)) {
    if (v.is_none()) continue;
    if (graph.opcode(graph.producer(v)) != Opcode::constant) return false;
    in += graph.type(v).static_bytes();
  }
  for (ValueId v : graph.results(n)) {
    if (!graph.type(v).is_static()) return false;
    out += graph.type(v).static_bytes();
  }
  return out <= std::max(in, kAlwaysFoldBytes);
}

}  // namespace

Result<Graph> fold_constants(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    NodeId made =
        HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, fold_constants))));
    if (!is_worth_folding(copy.target(), made)) continue;
    ValueRange results = copy.target().results(made);
    std::vector<ValueId> outputs;
    for (ValueId v : results) outputs.push_back(v);
    Graph alone = HONE_TRY(extract_subgraph(copy.target(), {&made, 1}, outputs));
    Result<std::vector<Tensor>> values = evaluate(
        alone, {}, {.numerics = Numerics::rounded, .max_iterations = kMaxFoldedIterations});
    // What the reference refuses (a size over its limit) stays in the graph.
    if (!values.ok()) continue;
    for (size_t i = 0; i < values->size(); ++i) {
      copy.target().set_name(results[i], "");
      copy.replace(graph.result(n, i), copy.target().add_constant(std::move((*values)[i])));
    }
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
