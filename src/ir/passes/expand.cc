#include <unordered_map>

#include "base/hash.h"
#include "ir/builder.h"
#include "ir/graph_copy.h"
#include "ir/passes/expand.h"
#include "ir/passes/passes.h"

namespace hone {

Result<Graph> expansion(Op op, std::span<const Type> operands, ExpandFn form) {
  Builder builder(op.name());
  std::vector<Value> values;
  for (Type type : operands) values.push_back(type ? builder.parameter("", type) : Value());
  if (form == nullptr) form = op.def().expand;
  HONE_CHECK(form != nullptr, "{} is no composite", op.name());
  return builder.finish(form(builder, op, values));
}

namespace {

// Expansions by what they depend on: models repeat the same few composites.
class Expansions {
 public:
  Result<const Graph*> of(Op op, std::vector<Type> operands) {
    Key key{op, std::move(operands)};
    auto known = graphs_.find(key);
    if (known != graphs_.end()) return &known->second;
    Graph graph = HONE_TRY(expansion(op, key.operands));
    return &graphs_.emplace(std::move(key), std::move(graph)).first->second;
  }

 private:
  struct Key {
    Op op;
    std::vector<Type> operands;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      Hasher hasher(key.op.hash());
      for (Type t : key.operands) hasher.add(t ? t.hash() : 0);
      return hasher.value();
    }
  };
  std::unordered_map<Key, Graph, KeyHash> graphs_;
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
