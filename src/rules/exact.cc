#include "rules/exact.h"

#include <algorithm>

#include "ir/op_facts.h"

namespace hone {

bool is_about_order(Op op) {
  constexpr Opcode kOrdered[] = {Opcode::max,    Opcode::min,     Opcode::abs,
                                 Opcode::select, Opcode::compare, Opcode::and_,
                                 Opcode::or_,    Opcode::xor_,    Opcode::not_};
  const std::optional<Fold> fold = fold_of(op);
  return std::ranges::find(kOrdered, op.opcode()) != std::end(kOrdered) || fold == Fold::largest ||
         fold == Fold::smallest;
}

bool is_about_order(const Graph& graph) {
  for (NodeId n : graph.nodes())
    if (is_about_order(graph.op(n))) return true;
  return false;
}

std::optional<Fold> fold_of(Op op) {
  if (!combines_by_kind(op.opcode())) return std::nullopt;
  const std::string& kind = op.word("kind");
  if (kind == "sum") return Fold::sum;
  if (kind == "product") return Fold::product;
  if (kind == "max") return Fold::largest;
  if (kind == "min") return Fold::smallest;
  return std::nullopt;
}

}  // namespace hone
