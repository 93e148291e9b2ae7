#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// Tensors are equal by bytes; two that were never materialized are equal by what generates them.
bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || a.content_hash() != b.content_hash()) return false;
  if (!a.is_materialized() && !b.is_materialized()) return true;
  return a.same_bytes(b);
}

// Finds the node of the target that computes the same, by what it is made of.
class Table {
 public:
  explicit Table(const Graph& target) : target_(target) {}

  // Node `n` of the target if it is the first of its kind, otherwise that one.
  NodeId canonical(NodeId n) {
    auto [begin, end] = nodes_.equal_range(hash(n));
    for (auto at = begin; at != end; ++at)
      if (equal(at->second, n)) return at->second;
    nodes_.emplace(hash(n), n);
    return n;
  }

 private:
  uint64_t hash(NodeId n) const {
    Hasher hasher(target_.op(n).hash());
    for (ValueId v : target_.operands(n)) hasher.add(v.index);
    for (const GraphRef& region : target_.regions(n)) hasher.add(structural_hash(*region));
    if (is_constant(target_.opcode(n))) hasher.add(target_.constant(n).content_hash());
    return hasher.value();
  }

  bool equal(NodeId a, NodeId b) const {
    if (target_.op(a) != target_.op(b)) return false;
    if (!std::ranges::equal(target_.operands(a), target_.operands(b))) return false;
    if (is_constant(target_.opcode(a)))
      return same_tensor(target_.constant(a), target_.constant(b));
    return std::ranges::equal(target_.regions(a), target_.regions(b),
                              [](const GraphRef& x, const GraphRef& y) {
                                return x == y || structural_hash(*x) == structural_hash(*y);
                              });
  }

  const Graph& target_;
  std::unordered_multimap<uint64_t, NodeId> nodes_;
};

}  // namespace

// A merged node stays behind without uses; the dead ones are removed at the end.
Result<Graph> merge_common_subexpressions(const Graph& graph) {
  GraphCopy copy(graph);
  Table table(copy.target());
  for (NodeId n : graph.nodes()) {
    NodeId made = HONE_TRY(copy.node(
        n, graph.op(n), HONE_TRY(transform_regions(graph, n, merge_common_subexpressions))));
    if (is_parameter(graph.opcode(n)) || has_effect(graph, n)) continue;
    NodeId first = table.canonical(made);
    if (first == made) continue;
    for (size_t i = 0; i < graph.results(n).size(); ++i) {
      copy.target().set_name(copy.target().result(made, i), "");
      copy.replace(graph.result(n, i), copy.target().result(first, i));
    }
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
