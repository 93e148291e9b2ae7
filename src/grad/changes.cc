#include "grad/changes.h"

#include <algorithm>

#include "ir/derivative.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

bool is_control(const Graph& graph, NodeId n) {
  return class_of(graph.opcode(n)) == OpClass::control;
}

Mask merged(const Mask& a, const Mask& b) {
  Mask both(a.size());
  for (size_t i = 0; i < a.size(); ++i) both[i] = a[i] || b[i];
  return both;
}

// Grows the mask of the states until a round of the body adds none.
Mask settled_states(const Graph& body, Mask inputs, size_t states) {
  for (;;) {
    const Mask outputs = changing_outputs(body, inputs);
    bool has_grown = false;
    for (size_t i = 0; i < states; ++i) {
      has_grown |= outputs[i] && !inputs[i];
      inputs[i] = inputs[i] || outputs[i];
    }
    if (!has_grown) return inputs;
  }
}

}  // namespace

bool any(const Mask& mask) { return std::ranges::find(mask, true) != mask.end(); }
size_t count(const Mask& mask) { return static_cast<size_t>(std::ranges::count(mask, true)); }

Mask changing_operands(const Graph& graph, NodeId n, const Mask& values) {
  Mask mask;
  for (ValueId v : graph.operands(n)) mask.push_back(!v.is_none() && values[v.index]);
  return mask;
}

ControlChanges control_changes(const Graph& graph, NodeId n, Mask operands) {
  std::span<const GraphRef> regions = graph.regions(n);
  if (is_branch(graph.opcode(n))) {
    const Mask arguments(operands.begin() + 1, operands.end());
    Mask results =
        merged(changing_outputs(*regions[0], arguments), changing_outputs(*regions[1], arguments));
    return {std::move(operands), std::move(results)};
  }
  size_t states = 0;
  if (is_while(graph.opcode(n))) states = operands.size();
  if (is_scan(graph.opcode(n))) states = static_cast<size_t>(graph.op(n).integer("carried"));
  const Graph& body = *regions.back();
  operands = settled_states(body, std::move(operands), states);
  Mask results = changing_outputs(body, operands);
  // A loop without rounds gives its operands.
  for (size_t i = 0; i < states; ++i) results[i] = operands[i];
  return {std::move(operands), std::move(results)};
}

Mask changing_values(const Graph& graph, const Mask& inputs) {
  Mask values(graph.value_count());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (NodeId n : graph.nodes()) {
    Mask operands = changing_operands(graph, n, values);
    if (!any(operands)) continue;
    const Derivative* derivative = graph.op(n).def().derivative;
    if (derivative != nullptr && derivative->is_constant) continue;
    Mask results(graph.results(n).size(), true);
    if (is_control(graph, n)) results = control_changes(graph, n, std::move(operands)).results;
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = graph.result(n, i);
      values[v.index] = results[i] && is_differentiable(graph.type(v));
    }
  }
  return values;
}

Mask changing_outputs(const Graph& graph, const Mask& inputs) {
  const Mask values = changing_values(graph, inputs);
  Mask outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(values[v.index]);
  return outputs;
}

}  // namespace hone
