#include "learn/first_bad.h"

#include <cmath>

#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"

namespace hone {

Result<std::optional<std::string>> first_bad_value(const Graph& graph,
                                                   std::span<const Tensor> inputs) {
  std::vector<ValueId> watched;
  for (NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) continue;
    for (ValueId v : graph.results(n))
      if (is_real(graph.type(v).dtype())) watched.push_back(v);
  }
  Graph all = graph;
  all.set_outputs(watched);
  const std::vector<Tensor> values =
      HONE_TRY(evaluate(all, inputs, {.numerics = Numerics::rounded}));
  for (size_t i = 0; i < watched.size(); ++i) {
    for (int64_t e = 0; e < values[i].elements(); ++e) {
      const double number = values[i].real_at(e);
      if (std::isfinite(number)) continue;
      const NodeId n = graph.producer(watched[i]);
      return std::optional(fmt::format("{} ({}), element {}: {}", graph.label(watched[i]),
                                       graph.op(n).name(), e, number));
    }
  }
  return std::optional<std::string>();
}

}  // namespace hone
