#include "learn/lift_weights.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "grad/changes.h"
#include "grad/straight_through.h"
#include "ir/derivative.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "learn/free_names.h"
#include "tensor/filled.h"

namespace hone {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

// ---- Weights become inputs ----------------------------------------------------------------------

// Per node: whether it is a constant that an op reads as something that training leaves alone.
Mask left_alone(const Graph& graph) {
  Mask mask(graph.node_count(), false);
  for (NodeId n : graph.nodes()) {
    const bool is_norm = graph.opcode(n) == Opcode::batch_norm;
    if (!is_norm && !is_quantize(graph.opcode(n)) && !is_dequantize(graph.opcode(n))) continue;
    // Mean and variance; scale and zero point.
    for (ValueId v : graph.operands(n).subspan(is_norm ? 3 : 1))
      if (!v.is_none()) mask[graph.producer(v).index] = true;
  }
  return mask;
}

bool may_train(const Graph& graph, NodeId n, const Mask& left_alone) {
  if (!is_constant(graph.opcode(n)) || left_alone[n.index]) return false;
  const Type type = graph.type(graph.result(n));
  return type.rank() > 0 && is_differentiable(type);
}

// All of them become inputs, but those of these names.
Result<Lifted> lifted_but(const Graph& model, std::span<const std::string> frozen) {
  const Mask skipped = left_alone(model);
  std::vector<bool> used(frozen.size(), false);
  Lifted lifted;
  GraphCopy copy(model);
  for (NodeId n : model.nodes())
    if (is_parameter(model.opcode(n))) HONE_TRY(copy.node(n));
  for (NodeId n : model.nodes()) {
    if (is_parameter(model.opcode(n))) continue;
    bool is_weight = may_train(model, n, skipped);
    const ValueId value = is_weight ? model.result(n) : ValueId();
    for (size_t i = 0; is_weight && i < frozen.size(); ++i)
      if (matches(frozen[i], model.name(value))) {
        used[i] = true;
        is_weight = false;
        break;
      }
    if (!is_weight) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const std::string name(model.name(value));
    copy.replace(value, copy.target().add_parameter(model.type(value), name));
    lifted.weights.push_back({name, model.constant(n)});
  }
  for (size_t i = 0; i < frozen.size(); ++i)
    if (!used[i])
      return usage_error("no weight is called '{}'", frozen[i])
          .with_hint("'hone inspect' lists the largest; a * at the end stands for any rest");
  lifted.graph = copy.finish();
  return lifted;
}

// ---- What constants alone decide ----------------------------------------------------------------

// Per node: whether no input decides what it computes.
Mask fixed_nodes(const Graph& graph) {
  Mask fixed(graph.node_count(), false);
  for (NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n)) || has_effect(graph, n)) continue;
    fixed[n.index] = std::ranges::all_of(graph.operands(n), [&](ValueId v) {
      return v.is_none() || (fixed[graph.producer(v).index] && graph.type(v).is_static());
    });
  }
  return fixed;
}

Result<Tensor> fixed_value(const Graph& graph, ValueId value) {
  if (is_constant(graph.opcode(graph.producer(value))))
    return graph.constant(graph.producer(value));
  std::set<uint32_t> seen = {graph.producer(value).index};
  for (auto at = seen.rbegin(); at != seen.rend(); ++at)  // from the last node back
    for (ValueId v : graph.operands(NodeId{*at}))
      if (!v.is_none()) seen.insert(graph.producer(v).index);
  std::vector<NodeId> nodes;
  for (uint32_t n : seen) nodes.push_back(NodeId{n});
  const Graph alone = HONE_TRY(extract_subgraph(graph, nodes, {{value}}));
  return HONE_TRY(evaluate(alone, {}, {.numerics = Numerics::rounded}))[0];
}

// True if the node's result has the elements of its first operand, in fewer bits each.
bool has_fewer_bits(const Graph& graph, NodeId n) {
  if (graph.operands(n).empty() || graph.results(n).size() != 1) return false;
  const Type from = graph.type(graph.operands(n)[0]), to = graph.type(graph.result(n));
  return std::ranges::equal(from.dims(), to.dims()) && bits(to.dtype()) < bits(from.dtype());
}

bool is_short_real(Type type) { return type.dtype() == DType::f16 || type.dtype() == DType::bf16; }

// f32 weights, quantized and dequantized as the node does it.
Result<ValueId> quantized_again(GraphCopy& copy, NodeId n, std::string_view name) {
  const Graph& graph = copy.source();
  const auto in = graph.operands(n);
  const Tensor weights = HONE_TRY(fixed_value(graph, graph.result(n)));
  Builder b;
  std::vector<Value> operands = {b.constant(weights, name)};
  std::vector<ValueId> arguments;
  for (ValueId v : in.subspan(1)) {
    operands.push_back(v.is_none() ? Value() : b.parameter("", graph.type(v)));
    if (!v.is_none()) arguments.push_back(copy(v));
  }
  const Op op = graph.op(n);
  const Attrs shared = {{"axis", op.integer("axis")}, {"block", op.integer("block")}};
  Attrs attrs = shared;
  attrs.emplace_back("dtype", graph.type(in[0]).dtype());
  operands[0] = b.op(Opcode::quantize, operands, attrs);
  const Graph body = HONE_TRY(b.finish({b.op(Opcode::dequantize, operands, shared)}));
  return HONE_TRY(copy.append(body, arguments))[0];
}

}  // namespace

Result<Lifted> lift_weights(const Graph& model, uint32_t output,
                            std::span<const std::string> frozen) {
  Graph named = model;
  FreeNames names(named);
  const Mask skipped = left_alone(named);
  for (NodeId n : named.nodes())
    if (may_train(named, n, skipped) && named.name(named.result(n)).empty())
      named.set_name(named.result(n), names.unique("weight"));
  Lifted lifted = HONE_TRY(lifted_but(named, frozen));
  const size_t own = named.inputs().size();
  const Graph real = HONE_TRY(with_straight_through(lifted.graph));
  std::vector<std::string> without(frozen.begin(), frozen.end());
  for (size_t i = 0; i < lifted.weights.size(); ++i) {
    Mask one(real.inputs().size(), false);
    one[own + i] = true;
    if (!changing_outputs(real, one)[output]) without.push_back(lifted.weights[i].name);
  }
  return without.size() > frozen.size() ? lifted_but(named, without) : std::move(lifted);
}

Result<Graph> lower_weights(const Lifted& lifted, std::span<const NamedTensor> weights) {
  const Graph& graph = lifted.graph;
  HONE_CHECK(weights.size() == lifted.weights.size(), "{} weights for {}", weights.size(),
             lifted.weights.size());
  const size_t own = graph.inputs().size() - weights.size();
  GraphCopy copy(graph);
  for (size_t i = 0; i < own; ++i) HONE_TRY(copy.node(graph.producer(graph.inputs()[i])));
  for (size_t i = 0; i < weights.size(); ++i)
    copy.replace(graph.inputs()[own + i], copy.target().add_constant(weights[i].tensor));
  for (NodeId n : graph.nodes())
    if (!is_parameter(graph.opcode(n))) HONE_TRY(copy.node(n));
  return copy.finish();
}

Result<Graph> unpack_weights(const Graph& model) {
  const Mask fixed = fixed_nodes(model);
  FreeNames names(model);
  GraphCopy copy(model);
  for (NodeId n : model.nodes()) {
    const bool is_one = fixed[n.index] && model.results(n).size() == 1;
    const ValueId value = is_one ? model.result(n) : ValueId();
    if (is_one && is_dequantize(model.opcode(n)) && model.type(value).dtype() == DType::f32 &&
        model.type(value).rank() > 0 && is_integer(model.type(model.operands(n)[0]).dtype())) {
      copy.replace(value, HONE_TRY(quantized_again(copy, n, names.unique("weight"))));
    } else if (is_one && is_constant(model.opcode(n)) && model.type(value).rank() > 0 &&
               is_short_real(model.type(value))) {
      Builder b;
      const Value whole =
          b.constant(rounded_to(model.constant(n), DType::f32), names.unique("weight"));
      const Graph body = HONE_TRY(b.finish({cast(whole, model.type(value).dtype())}));
      copy.replace(value, HONE_TRY(copy.append(body, {}))[0]);
    } else {
      HONE_TRY(copy.node(n));
    }
  }
  return remove_dead_code(copy.finish());
}

Result<Graph> pack_weights(const Graph& model) {
  const Mask fixed = fixed_nodes(model);
  GraphCopy copy(model);
  for (NodeId n : model.nodes()) {
    if (fixed[n.index] && has_fewer_bits(model, n))
      copy.replace(model.result(n),
                   copy.target().add_constant(HONE_TRY(fixed_value(model, model.result(n)))));
    else
      HONE_TRY(copy.node(n));
  }
  return remove_dead_code(copy.finish());
}

}  // namespace hone
