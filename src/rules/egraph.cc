#include "rules/egraph.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/op_facts.h"
#include "rules/match_search.h"

namespace hone {
namespace {

// Larger constants are weights, which nobody has twice after common parts were merged.
constexpr int64_t kComparedBytes = 4096;

bool is_payload_unique(const Graph& graph, NodeId n) {
  return !graph.regions(n).empty() || has_effect(graph, n);
}

}  // namespace

// ---- Classes ------------------------------------------------------------------------------------

ValueId EGraph::find(ValueId v) const {
  while (parent_[v.index] != v.index) v = ValueId{parent_[v.index]};
  return v;
}

ValueId EGraph::add_class(Type type, std::string_view name) {
  const auto index = static_cast<uint32_t>(parent_.size());
  parent_.push_back(index);
  types_.push_back(type);
  names_.emplace_back(name);
  return {index};
}

bool EGraph::unite(ValueId a, ValueId b) {
  a = find(a), b = find(b);
  if (a == b) return false;
  HONE_CHECK(type(a) == type(b), "classes of {} and {} are united", type(a).to_string(),
             type(b).to_string());
  // The first one keeps its number, and so do the values of the graph.
  if (b < a) std::swap(a, b);
  parent_[b.index] = a.index;
  if (names_[a.index].empty()) names_[a.index] = names_[b.index];
  is_rebuilt_ = false;
  return true;
}

std::vector<ValueId> EGraph::outputs() const {
  std::vector<ValueId> outputs;
  for (ValueId v : outputs_) outputs.push_back(find(v));
  return outputs;
}

// ---- Nodes --------------------------------------------------------------------------------------

uint64_t EGraph::hash(Op op, uint32_t payload, std::span<const ValueId> operands) const {
  Hasher hasher(op.hash());
  hasher.add(payload);
  for (ValueId v : operands) hasher.add(v.is_none() ? UINT32_MAX : find(v).index);
  return hasher.value();
}

uint64_t EGraph::hash(const Node& node) const {
  return hash(node.op, node.payload, operands(node));
}

bool EGraph::equal(const Node& node, Op op, uint32_t payload,
                   std::span<const ValueId> operands) const {
  if (node.op != op || node.payload != payload || node.operand_count != operands.size())
    return false;
  for (uint32_t i = 0; i < node.operand_count; ++i) {
    const ValueId x = operands_[node.operands + i], y = operands[i];
    if (x.is_none() || y.is_none() ? x != y : find(x) != find(y)) return false;
  }
  return true;
}

std::optional<NodeId> EGraph::equal_to(Op op, uint32_t payload,
                                       std::span<const ValueId> operands) const {
  const auto [first, last] = known_.equal_range(hash(op, payload, operands));
  for (auto at = first; at != last; ++at)
    if (equal(nodes_[at->second.index], op, payload, operands)) return at->second;
  return std::nullopt;
}

NodeId EGraph::add_node(Op op, uint32_t begin, uint32_t payload, std::span<const Type> results,
                        uint32_t origin) {
  Node node{.op = op,
            .operands = begin,
            .operand_count = static_cast<uint32_t>(operands_.size()) - begin,
            .payload = payload,
            .origin = origin};
  if (const std::optional<NodeId> same = equal_to(op, payload, operands(node))) {
    operands_.resize(begin);
    return *same;
  }
  node.results = static_cast<uint32_t>(results_.size());
  node.result_count = static_cast<uint32_t>(results.size());
  for (Type type : results) results_.push_back(add_class(type, ""));
  const NodeId n{static_cast<uint32_t>(nodes_.size())};
  nodes_.push_back(node);
  known_.emplace(hash(node), n);
  ++alive_;
  is_rebuilt_ = false;
  return n;
}

std::optional<uint32_t> EGraph::known_constant(const Tensor& tensor) const {
  if (tensor.byte_size() > kComparedBytes) return std::nullopt;
  for (size_t c = 0; c < constants_.size(); ++c)
    if (constants_[c].type() == tensor.type() && constants_[c].same_bytes(tensor))
      return static_cast<uint32_t>(c);
  return std::nullopt;
}

// The key that tells two nodes apart that have one op and the same operands.
uint32_t EGraph::payload_of(const Graph& graph, NodeId n) {
  if (is_constant(graph.opcode(n))) {
    if (const std::optional<uint32_t> known = known_constant(graph.constant(n))) return *known;
    constants_.push_back(graph.constant(n));
    return static_cast<uint32_t>(constants_.size()) - 1;
  }
  if (!is_payload_unique(graph, n)) return 0;
  const auto regions = graph.regions(n);
  regions_.emplace_back(regions.begin(), regions.end());
  return static_cast<uint32_t>(regions_.size());
}

std::span<const GraphRef> EGraph::regions(NodeId n) const {
  const Node& node = nodes_[n.index];
  if (is_constant(opcode(n)) || is_parameter(opcode(n)) || node.payload == 0) return {};
  return regions_[node.payload - 1];
}

size_t EGraph::memory_bytes() const {
  constexpr size_t kOfMap = 48, kOfLists = 96;
  return nodes_.size() * (sizeof(Node) + kOfMap) +
         (operands_.size() + results_.size()) * 3 * sizeof(ValueId) + parent_.size() * kOfLists;
}

std::vector<ValueId> EGraph::classes_in(const Graph& graph) const {
  std::unordered_map<std::string_view, ValueId> by_name;
  for (uint32_t v = 0; v < names_.size(); ++v)
    if (!names_[v].empty()) by_name.try_emplace(names_[v], find({v}));
  std::vector<ValueId> classes(graph.value_count(), ValueId());
  for (NodeId n : graph.nodes()) {
    const bool is_leaf = is_parameter(graph.opcode(n));
    std::optional<uint32_t> payload = 0;
    if (is_constant(graph.opcode(n))) payload = known_constant(graph.constant(n));
    if (is_leaf || is_payload_unique(graph, n)) payload.reset();
    std::vector<ValueId> operands;
    bool are_known = payload.has_value();
    for (ValueId v : graph.operands(n)) {
      operands.push_back(v.is_none() ? v : classes[v.index]);
      are_known = are_known && (v.is_none() || !operands.back().is_none());
    }
    std::optional<NodeId> same;
    if (are_known) same = equal_to(graph.op(n), *payload, operands);
    for (uint32_t r = 0; r < graph.results(n).size(); ++r) {
      ValueId& v = classes[graph.result(n, r).index];
      const auto named = by_name.find(graph.name(graph.result(n, r)));
      if (same)
        v = find(results(*same)[r]);
      else if (named != by_name.end())
        v = named->second;
    }
  }
  return classes;
}

// ---- Growing ------------------------------------------------------------------------------------

Result<EGraph> EGraph::of(const Graph& graph) {
  if (!graph.is_static()) {
    const std::string symbol(graph.symbols()[0].name());
    return unsupported("an e-graph needs sizes that are numbers, but {} is open", symbol);
  }
  EGraph made;
  made.graph_name_ = graph.name();
  for (uint32_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId v = graph.inputs()[i];
    const Type type = graph.type(v);
    const NodeId n =
        made.add_node(graph.op(graph.producer(v)), static_cast<uint32_t>(made.operands_.size()), i,
                      {&type, 1}, kSource);
    made.inputs_.push_back(made.results_[made.nodes_[n.index].results]);
    made.names_[made.inputs_.back().index] = graph.name(v);
  }
  made.outputs_ = HONE_TRY(made.add(graph, made.inputs_));
  for (const Donation& each : graph.donations()) made.donations_.push_back(each);
  made.rebuild();
  return made;
}

Result<std::vector<ValueId>> EGraph::add(const Graph& graph, std::span<const ValueId> inputs,
                                         uint32_t origin) {
  std::vector<ValueId> map(graph.value_count());
  for (size_t i = 0; i < inputs.size(); ++i) map[graph.inputs()[i].index] = inputs[i];
  for (NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n))) continue;
    const uint32_t payload = payload_of(graph, n);
    const auto begin = static_cast<uint32_t>(operands_.size());
    for (ValueId v : graph.operands(n)) operands_.push_back(v.is_none() ? v : find(map[v.index]));
    const NodeId made = add_node(graph.op(n), begin, payload, graph.result_types(n), origin);
    for (uint32_t r = 0; r < nodes_[made.index].result_count; ++r) {
      const ValueId v = find(results_[nodes_[made.index].results + r]);
      map[graph.result(n, r).index] = v;
      if (names_[v.index].empty() && origin == kSource)
        names_[v.index] = graph.name(graph.result(n, r));
    }
    if (has_effect(graph, n)) effects_.push_back(made);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(find(map[v.index]));
  return outputs;
}

Result<bool> EGraph::apply(const Rule& rule, const RuleMatch& match, uint32_t origin) {
  const Graph right = HONE_TRY(specialize(rule.right, match.sizes));
  std::vector<ValueId> arguments;
  for (ValueId v : rule.left.inputs()) arguments.push_back(find(match.values[v.index]));
  const std::vector<ValueId> results = HONE_TRY(add(right, arguments, origin));
  bool is_new = false;
  for (size_t o = 0; o < results.size(); ++o)
    is_new |= unite(match.values[rule.left.outputs()[o].index], results[o]);
  if (is_new && right.node_count() == right.inputs().size())
    shortcuts_.push_back({results[0], origin});
  return is_new;
}

// ---- Rebuilding ---------------------------------------------------------------------------------

void EGraph::rebuild() {
  while (merge_equal()) {
  }
  index();
  is_rebuilt_ = true;
}

// True if there were equal nodes. Uniting their results can make others equal.
bool EGraph::merge_equal() {
  known_.clear();
  bool found = false;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.is_dead) continue;
    const std::optional<NodeId> same = equal_to(node.op, node.payload, operands(node));
    if (!same) {
      known_.emplace(hash(node), NodeId{i});
      continue;
    }
    node.is_dead = true;
    --alive_;
    for (uint32_t r = 0; r < node.result_count; ++r)
      unite(results_[nodes_[same->index].results + r], results_[node.results + r]);
    found = true;
  }
  return found;
}

void EGraph::index() {
  members_.assign(parent_.size(), {});
  readers_.assign(parent_.size(), {});
  by_opcode_.assign(kOpcodeCount, {});
  for (ValueId& v : operands_)
    if (!v.is_none()) v = find(v);
  for (ValueId& v : results_) v = find(v);
  for (ValueId& v : inputs_) v = find(v);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const NodeId n{i};
    if (!is_alive(n)) continue;
    by_opcode_[static_cast<size_t>(opcode(n))].push_back(n);
    for (uint32_t r = 0; r < results(n).size(); ++r)
      members_[results(n)[r].index].push_back({n, r});
    for (ValueId v : operands(n)) {
      if (v.is_none()) continue;
      std::vector<NodeId>& readers = readers_[v.index];
      if (readers.empty() || readers.back() != n) readers.push_back(n);
    }
  }
}

// ---- Matching -----------------------------------------------------------------------------------

namespace {

class EGraphHost {
 public:
  explicit EGraphHost(const EGraph& egraph) : egraph_(egraph) {}

  Opcode opcode(NodeId n) const { return egraph_.opcode(n); }
  Op op(NodeId n) const { return egraph_.op(n); }
  const Tensor& constant(NodeId n) const { return egraph_.constant(n); }
  std::span<const ValueId> operands(NodeId n) const { return egraph_.operands(n); }
  std::span<const ValueId> results(NodeId n) const { return egraph_.results(n); }
  Type type(ValueId v) const { return egraph_.type(v); }

  template <class Use>
  void makers(ValueId v, size_t result, const Use& use) const {
    for (const EGraph::Member& member : egraph_.members(v))
      if (member.result == result && !use(member.node)) return;
  }
  template <class Use>
  void readers(ValueId v, const Use& use) const {
    for (NodeId n : egraph_.readers(v))
      if (!use(n)) return;
  }
  template <class Use>
  void nodes(Opcode opcode, const Use& use) const {
    for (NodeId n : egraph_.nodes(opcode))
      if (!use(n)) return;
  }
  // A class may well hold what reads it. Extraction takes none of these.
  bool may_replace(const Rule&, const RuleMatch&) const { return true; }

 private:
  const EGraph& egraph_;
};

}  // namespace

void RuleMatcher::find(const EGraph& egraph,
                       const std::function<bool(const RuleMatch&)>& found) const {
  HONE_CHECK(egraph.is_rebuilt(), "rules match an e-graph that is rebuilt");
  const EGraphHost host(egraph);
  MatchSearch<EGraphHost>(*rule_, steps_, host, found).run();
}

}  // namespace hone
