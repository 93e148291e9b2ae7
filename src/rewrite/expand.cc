#include <unordered_map>

#include "ir/application.h"
#include "ir/graph_copy.h"
#include "rewrite/expand.h"
#include "rewrite/passes.h"

namespace hone {

namespace {

class Expansions {
 public:
  Result<const Graph*> of(Op op, std::vector<Type> operands) {
    ApplicationKey key{op, std::move(operands)};
    auto known = graphs_.find(key);
    if (known != graphs_.end()) return &known->second;
    Graph graph = HONE_TRY(expansion(op, key.operands));
    return &graphs_.emplace(std::move(key), std::move(graph)).first->second;
  }

 private:
  std::unordered_map<ApplicationKey, Graph, ApplicationHash> graphs_;
};

Result<Graph> expanded(const Graph& graph, const std::function<bool(Opcode)>& which,
                       Expansions& expansions) {
  GraphCopy copy(graph);
  auto inner = [&](const Graph& g) { return expanded(g, which, expansions); };
  for (NodeId n : graph.nodes()) {
    if (!is_composite(graph.opcode(n)) || !which(graph.opcode(n))) {
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, inner))));
      continue;
    }
    // An expansion may hold composites in turn.
    const Graph* spelled = HONE_TRY(expansions.of(graph.op(n), graph.operand_types(n)));
    Graph body = HONE_TRY(inner(*spelled));
    std::vector<ValueId> arguments;
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) arguments.push_back(copy(v));
    std::vector<ValueId> results = HONE_TRY(copy.append(body, arguments));
    for (size_t i = 0; i < results.size(); ++i) copy.replace(graph.result(n, i), results[i]);
  }
  return copy.finish();
}

}  // namespace

Result<Graph> expand_composites(const Graph& graph, const std::function<bool(Opcode)>& which) {
  Expansions expansions;
  return expanded(graph, which, expansions);
}

Result<Graph> expand_composites(const Graph& graph) {
  return expand_composites(graph, [](Opcode) { return true; });
}

}  // namespace hone
