#include "rules/rule.h"

#include <algorithm>

#include "ir/op_facts.h"

namespace hone {
namespace {

constexpr size_t kMaxNodes = 256;  // of one side

// The nodes that the outputs depend on; a parameter that none depends on is not among them.
std::vector<bool> reached_nodes(const Graph& graph) {
  std::vector<bool> reached(graph.node_count());
  for (ValueId v : graph.outputs()) reached[graph.producer(v).index] = true;
  for (uint32_t n = static_cast<uint32_t>(graph.node_count()); n-- > 0;) {
    if (!reached[n]) continue;
    for (ValueId v : graph.operands({n}))
      if (!v.is_none()) reached[graph.producer(v).index] = true;
  }
  return reached;
}

Status check_side(const Graph& graph, std::string_view side) {
  if (graph.node_count() > kMaxNodes)
    return over_limit("the {} side has {} nodes, at most {}", side, graph.node_count(), kMaxNodes);
  for (NodeId n : graph.nodes()) {
    if (!graph.regions(n).empty() || has_effect(graph, n))
      return unsupported("{} of the {} side has regions or effects", graph.describe(n), side);
    for (ValueId v : graph.results(n)) {
      const DType dtype = graph.type(v).dtype();
      if (!is_real(dtype) && dtype != DType::boolean)
        return unsupported("{} of the {} side is {}: rules are about reals and bools",
                           graph.describe(n), side, graph.type(v).to_string());
    }
  }
  return {};
}

Status check_left(const Graph& left) {
  const std::vector<bool> reached = reached_nodes(left);
  for (NodeId n : left.nodes())
    if (!reached[n.index])
      return bad_input("{} of the left side does not lead to its results", left.describe(n));
  for (ValueId v : left.outputs())
    if (is_parameter(left.opcode(left.producer(v))))
      return bad_input("the left side returns its input {}, which every value matches",
                       left.label(v));
  return {};
}

}  // namespace

std::string_view name(Rung rung) {
  constexpr std::string_view kNames[] = {"none", "sampled", "small", "all_sizes"};
  return kNames[static_cast<size_t>(rung)];
}

std::string_view name(FloatEffect effect) {
  constexpr std::string_view kNames[] = {"unknown", "exact", "reassociates", "finite_only",
                                         "real_only"};
  return kNames[static_cast<size_t>(effect)];
}

std::string_view name(Relation relation) {
  constexpr std::string_view kNames[] = {"=", "!=", "<", "<="};
  return kNames[static_cast<size_t>(relation)];
}

bool Condition::holds(const Bindings& sizes) const {
  const Dim a = left.bind(sizes), b = right.bind(sizes);
  switch (relation) {
    case Relation::equal: return a == b;
    case Relation::unequal: return provably_lt(a, b) || provably_lt(b, a);
    case Relation::less: return provably_lt(a, b);
    case Relation::at_most: return provably_le(a, b);
  }
  return false;
}

std::string Condition::to_string() const {
  return fmt::format("{} {} {}", left.to_string(), name(relation), right.to_string());
}

bool Rule::admits(const Bindings& sizes) const {
  return std::ranges::all_of(guard, [&](const Condition& c) { return c.holds(sizes); });
}

std::vector<Symbol> Rule::symbols() const { return left.symbols(); }

Status check(const Rule& rule) {
  HONE_TRY(check_side(rule.left, "left"));
  HONE_TRY(check_side(rule.right, "right"));
  HONE_TRY(check_left(rule.left));
  if (rule.left.input_types() != rule.right.input_types())
    return bad_input("the sides have different inputs");
  const std::vector<Type> left = rule.left.output_types(), right = rule.right.output_types();
  if (left.size() != right.size())
    return bad_input("the left side returns {} values, the right side {}", left.size(),
                     right.size());
  if (left.empty()) return bad_input("the rule returns nothing");
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i] != right[i])
      return bad_input("result {} is {} on the left side and {} on the right one", i,
                       left[i].to_string(), right[i].to_string());
  const std::vector<Symbol> known = rule.left.symbols();
  const auto is_known = [&](Symbol s) { return std::ranges::find(known, s) != known.end(); };
  for (Symbol s : rule.right.symbols())
    if (!is_known(s))
      return bad_input("symbol '{}' of the right side is not on the left side", s.name());
  for (const Condition& condition : rule.guard)
    for (Dim side : {condition.left, condition.right})
      for (Symbol s : side.symbols())
        if (!is_known(s))
          return bad_input("symbol '{}' of the guard is not on the left side", s.name());
  return {};
}

}  // namespace hone
