#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ir/graph_copy.h"

// Whole-graph questions that need no rewriting: users, liveness, hashing; and the transformations
// that every floor needs: specialization and extraction.

namespace hone {

namespace {

uint64_t content_hash(const Tensor& constant) { return constant.content_hash(); }

// A small constant is often a size or the like, so its bytes count. (content_hash() would differ
// between a lazy tensor, which has that of its identity, and an equal one from a file.)
uint64_t shape_hash(const Tensor& constant) {
  constexpr int64_t kFew = 16;
  const uint64_t type = hash_string(constant.type().to_string());
  if (constant.elements() > kFew) return type;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = constant.bytes_once(scratch);
  return hash_combine(type, hash_bytes(bytes));
}

uint64_t hash_of(const Graph& graph, uint64_t (*constant_hash)(const Tensor&)) {
  std::vector<bool> live = live_nodes(graph);
  std::vector<uint64_t> of_node(graph.node_count());
  auto value_hash = [&](ValueId v) {
    if (v.is_none()) return uint64_t{0x5bd1e995};
    return hash_combine(of_node[graph.producer(v).index], graph.result_index(v));
  };
  uint64_t next_parameter = 0;
  for (NodeId n : graph.nodes()) {
    if (!live[n.index]) continue;
    Hasher hasher(graph.op(n).hash());
    if (graph.opcode(n) == Opcode::parameter) hasher.add(next_parameter++);
    if (graph.opcode(n) == Opcode::constant) hasher.add(constant_hash(graph.constant(n)));
    for (ValueId v : graph.operands(n)) hasher.add(value_hash(v));
    for (const GraphRef& region : graph.regions(n)) hasher.add(hash_of(*region, constant_hash));
    of_node[n.index] = hasher.value();
  }
  Hasher hasher(graph.inputs().size());
  for (ValueId v : graph.inputs()) hasher.add(value_hash(v));
  for (ValueId v : graph.outputs()) hasher.add(value_hash(v));
  for (Donation d : graph.donations()) hasher.add(d.input).add(d.output);
  return hasher.value();
}

}  // namespace

uint64_t structural_hash(const Graph& graph) { return hash_of(graph, content_hash); }
uint64_t hash_without_weights(const Graph& graph) { return hash_of(graph, shape_hash); }

Users::Users(const Graph& graph) : begin_(graph.value_count() + 1), output_(graph.value_count()) {
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) ++begin_[v.index + 1];
  for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  nodes_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) nodes_[next[v.index]++] = n;
  for (ValueId v : graph.outputs()) output_[v.index] = true;
}

bool has_effect(const Graph& graph, NodeId n) {
  if (graph.op(n).def().traits.has_effect) return true;
  std::span<const GraphRef> regions = graph.regions(n);
  return std::any_of(regions.begin(), regions.end(), [](const GraphRef& region) {
    for (NodeId inner : region->nodes())
      if (has_effect(*region, inner)) return true;
    return false;
  });
}

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.node_count());
  for (ValueId v : graph.outputs()) live[graph.producer(v).index] = true;
  for (uint32_t i = static_cast<uint32_t>(graph.node_count()); i-- > 0;) {
    NodeId n{i};
    if (!live[i]) live[i] = graph.opcode(n) == Opcode::parameter || has_effect(graph, n);
    if (!live[i]) continue;
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) live[graph.producer(v).index] = true;
  }
  return live;
}

Result<Graph> specialize(const Graph& graph, const Bindings& bindings) {
  for (Symbol symbol : graph.symbols())
    if (auto bound = bindings.find(symbol.name()); bound != bindings.end())
      HONE_TRY(check_binding(symbol, bound->second));
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    auto bind_region = [&](const Graph& region) { return specialize(region, bindings); };
    HONE_TRY(copy.node(n, graph.op(n).bind(bindings),
                       HONE_TRY(transform_regions(graph, n, bind_region))));
  }
  return copy.finish();
}

Result<Bindings> bind_inputs(const Graph& graph, std::span<const Type> actual) {
  if (actual.size() != graph.inputs().size())
    return bad_input("graph '{}' takes {} inputs, {} are given", graph.name(),
                     graph.inputs().size(), actual.size());
  Bindings bindings;
  for (size_t i = 0; i < actual.size(); ++i) {
    Type wanted = graph.type(graph.inputs()[i]);
    auto mismatch = [&](std::string_view why) {
      return bad_input("input '{}' is {}, the graph takes {}{}", graph.label(graph.inputs()[i]),
                       actual[i].to_string(), wanted.to_string(), why);
    };
    if (actual[i].dtype() != wanted.dtype() || actual[i].rank() != wanted.rank())
      return mismatch("");
    for (int axis = 0; axis < wanted.rank(); ++axis) {
      Status match = match_dim(wanted.dim(axis), actual[i].dim(axis).value(), bindings);
      if (!match.ok()) return mismatch(fmt::format(" (dim {}: {})", axis, match.error().what()));
    }
  }
  return bindings;
}

Result<Graph> extract_subgraph(const Graph& graph, std::span<const NodeId> nodes,
                               std::span<const ValueId> outputs) {
  Graph result(graph.name() + "_part");
  std::unordered_map<uint32_t, ValueId> inside;  // value of `graph` -> value of `result`
  auto import = [&](ValueId v) {
    if (v.is_none()) return v;
    auto known = inside.find(v.index);
    if (known != inside.end()) return known->second;
    NodeId producer = graph.producer(v);
    ValueId copy = graph.opcode(producer) == Opcode::constant
                       ? result.add_constant(graph.constant(producer), graph.name(v))
                       : result.add_parameter(graph.type(v), graph.name(v));
    inside.emplace(v.index, copy);
    return copy;
  };
  uint32_t previous = 0;
  for (NodeId n : nodes) {
    if (n.index < previous) return bad_input("the nodes are not in topological order");
    previous = n.index;
    Opcode opcode = graph.opcode(n);
    if (opcode == Opcode::parameter || opcode == Opcode::constant) {
      import(graph.result(n));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId v : graph.operands(n)) operands.push_back(import(v));
    std::span<const GraphRef> regions = graph.regions(n);
    NodeId copy = HONE_TRY(result.append(graph.op(n), operands, {regions.begin(), regions.end()}));
    for (size_t i = 0; i < graph.results(n).size(); ++i) {
      result.set_name(result.result(copy, i), graph.name(graph.result(n, i)));
      inside.emplace(graph.result(n, i).index, result.result(copy, i));
    }
  }
  std::vector<ValueId> new_outputs;
  for (ValueId v : outputs) new_outputs.push_back(import(v));
  result.set_outputs(std::move(new_outputs));
  return result;
}

}  // namespace hone
