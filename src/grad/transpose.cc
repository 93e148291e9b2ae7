#include "grad/transpose.h"

#include <algorithm>

#include "grad/transpose_node.h"
#include "ir/derivatives/rules.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

class Transposer {
 public:
  Transposer(const Graph& graph, const Mask& inputs)
      : graph_(graph),
        b_(graph.name()),
        is_linear_(changing_values(graph, inputs)),
        values_(graph.value_count()),
        cotangents_(graph.value_count()) {}

  Result<Graph> run(const Mask& inputs, const Mask& outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId v = graph_.inputs()[i];
      if (!inputs[i]) values_[v.index] = b_.parameter(graph_.name(v), graph_.type(v));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId v = graph_.outputs()[i];
      if (outputs[i]) add(v, b_.parameter("", graph_.type(v)));
    }
    for (NodeId n : graph_.nodes()) copy(n);
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) {
      Status done = go_back(NodeId{i});
      if (done.ok() && !b_.ok()) done = b_.status();
      if (!done.ok()) return Error(done.error()).within(graph_.describe(NodeId{i}));
    }
    std::vector<Value> results;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      const ValueId v = graph_.inputs()[i];
      Value cotangent = cotangents_[v.index];
      results.push_back(cotangent ? cotangent : zeros_of(b_, graph_.type(v)));
    }
    return remove_dead_code(HONE_TRY(b_.finish(results)));
  }

 private:
  void add(ValueId v, Value cotangent) {
    if (cotangent) cotangents_[v.index] = sum_of(cotangents_[v.index], cotangent);
  }

  // Values that are not linear are computed as before.
  void copy(NodeId n) {
    const ValueRange results = graph_.results(n);
    if (is_parameter(graph_.opcode(n))) return;
    for (ValueId v : results)
      if (is_linear_[v.index]) return;
    if (is_constant(graph_.opcode(n))) {
      values_[results[0].index] = b_.constant(graph_.constant(n));
      return;
    }
    std::vector<Value> operands;
    for (ValueId v : graph_.operands(n)) {
      operands.push_back(v.is_none() ? Value() : values_[v.index]);
      // The derivative of a linear value with jumps, such as its sign: refused when something reads
      // it.
      if (!v.is_none() && !operands.back()) return;
    }
    std::span<const GraphRef> regions = graph_.regions(n);
    std::vector<Value> made = b_.ops(graph_.op(n), operands, {regions.begin(), regions.end()});
    for (size_t i = 0; i < results.size(); ++i)
      values_[results[i].index] = b_.ok() ? made[i] : made.front();
  }

  Status go_back(NodeId n) {
    std::vector<Value> cotangents;
    std::vector<Type> result_types;
    bool is_reached = false;
    for (ValueId v : graph_.results(n)) {
      cotangents.push_back(is_linear_[v.index] ? cotangents_[v.index] : Value());
      result_types.push_back(graph_.type(v));
      is_reached |= static_cast<bool>(cotangents.back());
    }
    if (!is_reached || is_parameter(graph_.opcode(n))) return {};

    const Mask linear = changing_operands(graph_, n, is_linear_);
    std::vector<Value> operands;
    for (ValueId v : graph_.operands(n)) {
      operands.push_back(v.is_none() ? Value() : values_[v.index]);
      if (!v.is_none() && !operands.back() && !is_linear_[v.index])
        return bad_input("reads %{}, which is not a linear function of the inputs", v.index);
    }
    std::vector<Value> back;
    if (class_of(graph_.opcode(n)) == OpClass::control) {
      back = HONE_TRY(transposed_control(b_, graph_, n, operands, linear, cotangents));
    } else {
      const Derivative* derivative = graph_.op(n).def().derivative;
      if (derivative == nullptr || derivative->transpose == nullptr)
        return bad_input("'{}' is not a linear function of its operands", graph_.op(n).name());
      const std::vector<Type> types = graph_.operand_types(n);
      back = derivative->transpose(
          {b_, graph_.op(n), operands, types, cotangents, linear, result_types});
    }
    for (size_t i = 0; i < linear.size() && b_.ok(); ++i)
      if (linear[i]) add(graph_.operands(n)[i], back[i]);
    return {};
  }

  const Graph& graph_;
  Builder b_;
  Mask is_linear_;
  std::vector<Value> values_;      // by value; absent for linear ones
  std::vector<Value> cotangents_;  // by value; absent: none has come back yet
};

}  // namespace

Result<Graph> transpose(const Graph& graph, const Mask& inputs, const Mask& outputs) {
  return Transposer(graph, inputs).run(inputs, outputs);
}

}  // namespace hone
