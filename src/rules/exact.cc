#include "rules/exact.h"

#include <algorithm>

namespace hone {

bool is_about_order(const Graph& graph) {
  constexpr Opcode kOrdered[] = {Opcode::max, Opcode::min, Opcode::abs, Opcode::select,
                                 Opcode::compare};
  for (NodeId n : graph.nodes()) {
    if (std::ranges::find(kOrdered, graph.opcode(n)) != std::end(kOrdered)) return true;
    const std::optional<Fold> fold = fold_of(graph.op(n));
    if (fold == Fold::largest || fold == Fold::smallest) return true;
  }
  return false;
}

std::optional<Fold> fold_of(Op op) {
  if (op.opcode() != Opcode::reduce && op.opcode() != Opcode::window_reduce) return std::nullopt;
  const std::string& kind = op.word("kind");
  if (kind == "sum") return Fold::sum;
  if (kind == "product") return Fold::product;
  if (kind == "max") return Fold::largest;
  if (kind == "min") return Fold::smallest;
  return std::nullopt;
}

}  // namespace hone
