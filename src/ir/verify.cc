#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"
#include "ir/sharding.h"

namespace hone {
namespace {

constexpr int kMaxRegionDepth = 64;

Status verify_at_depth(const Graph& graph, int depth, std::vector<MeshRef>& meshes);

Status verify_node(const Graph& graph, NodeId n) {
  Opcode opcode = graph.opcode(n);
  if (opcode == Opcode::parameter) return {};
  if (opcode == Opcode::constant) {
    if (graph.constant(n).type() != graph.type(graph.result(n)))
      return bad_input("holds data of type {}, but is declared {}",
                       graph.constant(n).type().to_string(),
                       graph.type(graph.result(n)).to_string());
    return {};
  }
  for (ValueId v : graph.operands(n)) {
    if (v.is_none()) continue;
    if (v.index >= graph.value_count()) return bad_input("operand {} does not exist", v.index);
    if (graph.producer(v).index >= n.index)
      return bad_input("operand {} is produced after its use", graph.label(v));
  }
  std::vector<Type> operands = graph.operand_types(n);
  std::vector<const Graph*> regions;
  for (const GraphRef& region : graph.regions(n)) regions.push_back(region.get());
  std::vector<Type> inferred = HONE_TRY(infer({graph.op(n), operands, regions}));
  std::vector<Type> stored = graph.result_types(n);
  if (inferred.size() != stored.size())
    return bad_input("has {} results, but inference gives {}", stored.size(), inferred.size());
  for (size_t i = 0; i < stored.size(); ++i)
    if (stored[i] != inferred[i])
      return bad_input("result {} has type {}, but inference gives {}", i, stored[i].to_string(),
                       inferred[i].to_string());
  return {};
}

Status verify_names(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  names.reserve(graph.value_count());
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    std::string_view name = graph.name(ValueId{i});
    if (!name.empty() && !names.insert(name).second)
      return bad_input("the name '%{}' is given to two values", name);
  }
  return {};
}

Status verify_symbols(const Graph& graph) {
  std::unordered_map<std::string_view, Symbol> meaning;
  std::vector<Symbol> symbols = graph.symbols();
  for (const Symbol& symbol : symbols) {
    auto [at, fresh] = meaning.emplace(symbol.name(), symbol);
    if (!fresh && !(at->second == symbol))
      return bad_input("symbol {} has two ranges: {}..{} and {}..{}", symbol.name(),
                       at->second.min(), at->second.max(), symbol.min(), symbol.max());
  }
  return {};
}

Status verify_donations(const Graph& graph) {
  std::unordered_set<uint32_t> inputs, outputs;
  for (Donation d : graph.donations()) {
    if (d.input >= graph.inputs().size())
      return bad_input("input {} is donated, but there are {} inputs", d.input,
                       graph.inputs().size());
    if (d.output >= graph.outputs().size())
      return bad_input("output {} is given a buffer, but there are {} outputs", d.output,
                       graph.outputs().size());
    if (!inputs.insert(d.input).second) return bad_input("input {} is donated twice", d.input);
    if (!outputs.insert(d.output).second)
      return bad_input("output {} is given two buffers", d.output);
    Type from = graph.type(graph.inputs()[d.input]);
    Type to = graph.type(graph.outputs()[d.output]);
    if (from != to)
      return bad_input("input {} of type {} is donated to output {} of type {}", d.input,
                       from.to_string(), d.output, to.to_string());
  }
  return {};
}

Status verify_at_depth(const Graph& graph, int depth, std::vector<MeshRef>& meshes) {
  if (depth > kMaxRegionDepth)
    return over_limit("regions are nested deeper than {}", kMaxRegionDepth);
  size_t parameters = 0;
  for (NodeId n : graph.nodes()) {
    parameters += graph.opcode(n) == Opcode::parameter;
    Status good = verify_node(graph, n);
    if (!good.ok()) return std::move(good).error().within(graph.describe(n));
    for (const GraphRef& region : graph.regions(n)) {
      Status inner = verify_at_depth(*region, depth + 1, meshes);
      if (!inner.ok()) return std::move(inner).error().within(graph.describe(n));
    }
  }
  if (parameters != graph.inputs().size())
    return bad_input("has {} parameters, but lists {} as inputs", parameters,
                     graph.inputs().size());
  for (ValueId v : graph.outputs())
    if (v.index >= graph.value_count()) return bad_input("output {} does not exist", v.index);
  HONE_TRY(verify_names(graph));
  HONE_TRY(verify_symbols(graph));
  HONE_TRY(verify_donations(graph));
  return check_shardings(graph, meshes);
}

}  // namespace

Status verify(const Graph& graph) {
  std::vector<MeshRef> meshes;
  Status good = verify_at_depth(graph, 0, meshes);
  if (good.ok()) return {};
  return std::move(good).error().within(fmt::format("graph '{}'", graph.name()));
}

}  // namespace hone
