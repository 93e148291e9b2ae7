#include "grad/linearize.h"

#include <algorithm>

#include "grad/linearize_node.h"
#include "ir/application.h"
#include "ir/derivatives/rules.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

bool any_present(std::span<const Value> values) {
  return std::ranges::any_of(values, [](Value v) { return static_cast<bool>(v); });
}

// The names of a region's nodes do not matter; those of the graph keep their names.
enum class Names : uint8_t { kept, dropped };

class Linearizer {
 public:
  explicit Linearizer(Builder& builder) : b_(builder) {}

  // The graph, applied to values with tangents.
  Result<WithTangents> apply(const Graph& graph, const WithTangents& inputs, Names names) {
    std::vector<Value> values(graph.value_count()), tangents(graph.value_count());
    for (size_t i = 0; i < inputs.values.size(); ++i) {
      values[graph.inputs()[i].index] = inputs.values[i];
      tangents[graph.inputs()[i].index] = inputs.tangents[i];
    }
    for (NodeId n : graph.nodes()) {
      if (is_parameter(graph.opcode(n))) continue;
      WithTangents operands;
      for (ValueId v : graph.operands(n)) {
        operands.values.push_back(v.is_none() ? Value() : values[v.index]);
        operands.tangents.push_back(v.is_none() ? Value() : tangents[v.index]);
      }
      Result<WithTangents> made = node(graph, n, operands);
      if (made.ok() && !b_.ok()) made = b_.status().error();
      if (!made.ok()) return std::move(made).error().within(graph.describe(n));
      for (size_t i = 0; i < graph.results(n).size(); ++i) {
        const ValueId v = graph.result(n, i);
        values[v.index] = made->values[i];
        if (names == Names::kept && !graph.name(v).empty() && is_new(made->values[i]))
          values[v.index].named(graph.name(v));
        if (is_differentiable(graph.type(v))) tangents[v.index] = made->tangents[i];
      }
    }
    WithTangents outputs;
    for (ValueId v : graph.outputs()) {
      outputs.values.push_back(values[v.index]);
      outputs.tangents.push_back(tangents[v.index]);
    }
    return outputs;
  }

 private:
  bool is_new(Value v) const { return b_.graph().name(v.id()).empty(); }

  Result<WithTangents> node(const Graph& graph, NodeId n, const WithTangents& operands) {
    const Op op = graph.op(n);
    const OpDef& def = op.def();
    if (!needs_tangents(graph, n, operands)) return copied(graph, n, operands);
    if (op.opcode() == Opcode::call) return apply(*graph.regions(n)[0], operands, Names::dropped);
    if (class_of(op.opcode()) == OpClass::control)
      return linearized_control(b_, graph, n, operands);
    if (def.derivative == nullptr) {
      if (def.expand != nullptr) return spelled(graph, n, operands, def.expand);
      return unsupported("'{}' has no derivative", op.name())
          .with_hint("stop_gradient in front of it makes what it reads a constant");
    }
    if (def.derivative->spelling != nullptr) {
      WithTangents made = HONE_TRY(spelled(graph, n, operands, def.derivative->spelling));
      if (!made.values.empty()) return made;
    }
    WithTangents made = copied(graph, n, operands);
    if (!b_.ok()) return b_.status().error();
    const TangentCall call = {b_, op, operands.values, made.values, operands.tangents};
    made.tangents = def.derivative->tangent ? def.derivative->tangent(call) : linear_tangents(call);
    return made;
  }

  static bool needs_tangents(const Graph& graph, NodeId n, const WithTangents& operands) {
    const Derivative* derivative = graph.op(n).def().derivative;
    if (!any_present(operands.tangents)) return false;
    if (derivative != nullptr && derivative->is_constant) return false;
    return std::ranges::any_of(graph.result_types(n),
                               [](Type type) { return is_differentiable(type); });
  }

  WithTangents copied(const Graph& graph, NodeId n, const WithTangents& operands) {
    const size_t results = graph.results(n).size();
    std::vector<Value> none(results);
    if (is_constant(graph.opcode(n))) return {{b_.constant(graph.constant(n))}, none};
    std::span<const GraphRef> regions = graph.regions(n);
    std::vector<Value> values =
        b_.ops(graph.op(n), operands.values, {regions.begin(), regions.end()});
    values.resize(results, values.empty() ? Value() : values.front());
    return {std::move(values), std::move(none)};
  }

  // No values if the form has none.
  Result<WithTangents> spelled(const Graph& graph, NodeId n, const WithTangents& operands,
                               ExpandFn form) {
    const Graph body = HONE_TRY(expansion(graph.op(n), graph.operand_types(n), form));
    WithTangents present;
    for (size_t i = 0; i < operands.values.size(); ++i) {
      if (!operands.values[i]) continue;
      present.values.push_back(operands.values[i]);
      present.tangents.push_back(operands.tangents[i]);
    }
    return apply(body, present, Names::dropped);
  }

  Builder& b_;
};

}  // namespace

Result<Graph> linearize(const Graph& graph, const Mask& inputs, const Mask& outputs) {
  Builder b(graph.name());
  WithTangents arguments;
  for (ValueId v : graph.inputs())
    arguments.values.push_back(b.parameter(graph.name(v), graph.type(v)));
  arguments.tangents.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) arguments.tangents[i] = b.parameter("", graph.type(graph.inputs()[i]));
  WithTangents made = HONE_TRY(Linearizer(b).apply(graph, arguments, Names::kept));
  std::vector<Value> results = made.values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    results.push_back(made.tangents[i] ? made.tangents[i]
                                       : zeros_of(b, graph.type(graph.outputs()[i])));
  }
  return b.finish(results);
}

}  // namespace hone
