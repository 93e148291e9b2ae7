#include "grad/grad.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "grad/linearize.h"
#include "grad/straight_through.h"
#include "grad/transpose.h"
#include "grad/unzip.h"
#include "ir/derivative.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {

namespace {

Mask with_tail(size_t plain, size_t tail) {
  Mask mask(plain, false);
  mask.resize(plain + tail, true);
  return mask;
}

// ---- What has a gradient ------------------------------------------------------------------------

Status check_loss(const Graph& graph, uint32_t loss) {
  if (loss >= graph.outputs().size())
    return bad_input("there is no output {}: the graph has {}", loss, graph.outputs().size());
  const ValueId v = graph.outputs()[loss];
  const Type type = graph.type(v);
  if (type.rank() == 0 && is_differentiable(type)) return {};
  return bad_input("the loss {} is {}; it must be one real number, such as f32[]", graph.label(v),
                   type.to_string())
      .with_hint("a mean or sum of it is one");
}

// Per value: whether it is computed from `from`, in whatever way.
Mask reached(const Graph& graph, ValueId from) {
  Mask mask(graph.value_count());
  mask[from.index] = true;
  for (NodeId n : graph.nodes()) {
    if (!any(changing_operands(graph, n, mask))) continue;
    for (ValueId v : graph.results(n)) mask[v.index] = true;
  }
  return mask;
}

// Per node: whether the value is computed from it.
Mask leads_to(const Graph& graph, ValueId to) {
  Mask mask(graph.node_count());
  mask[graph.producer(to).index] = true;
  for (uint32_t i = static_cast<uint32_t>(graph.node_count()); i-- > 0;) {
    if (!mask[i]) continue;
    for (ValueId v : graph.operands(NodeId{i}))
      if (!v.is_none()) mask[graph.producer(v).index] = true;
  }
  return mask;
}

// An error if all ways from the input to the loss end at ops without a derivative. One that a
// stop_gradient ends is meant to.
Status check_path(const Graph& graph, uint32_t input, ValueId loss) {
  Mask one(graph.inputs().size(), false);
  one[input] = true;
  const ValueId from = graph.inputs()[input];
  if (!is_differentiable(graph.type(from)))
    return bad_input("input {} is {}, which has no gradient", graph.label(from),
                     graph.type(from).to_string());
  const Mask changing = changing_values(graph, one);
  if (changing[loss.index] || !reached(graph, from)[loss.index]) return {};
  const Mask leads = leads_to(graph, loss);
  for (NodeId n : graph.nodes()) {
    if (!leads[n.index] || graph.opcode(n) == Opcode::stop_gradient) continue;
    if (!any(changing_operands(graph, n, changing))) continue;
    bool changes = false;
    for (ValueId v : graph.results(n)) changes |= changing[v.index];
    if (changes) continue;
    return unsupported(
               "the loss depends on {} only through {}, which has no derivative: its "
               "results do not change, or change in jumps",
               graph.label(from), graph.describe(n))
        .with_hint("compute no gradient of this input");
  }
  return {};
}

// ---- The parts together -------------------------------------------------------------------------

void name_gradients(Graph& graph, const Graph& source, const Mask& inputs, size_t first) {
  std::unordered_set<std::string> taken;
  for (uint32_t i = 0; i < graph.value_count(); ++i) taken.emplace(graph.name(ValueId{i}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const ValueId gradient = graph.outputs()[first++];
    std::string name(source.name(source.inputs()[i]));
    if (name.empty() || !graph.name(gradient).empty()) continue;
    name += ".grad";
    if (taken.insert(name).second) graph.set_name(gradient, name);
  }
}

Result<Graph> joined(const Graph& source, const Unzipped& parts, const Graph& back,
                     const Mask& inputs, Type loss) {
  const size_t outputs = source.outputs().size();
  GraphCopy copy(parts.primal);
  for (NodeId n : parts.primal.nodes()) HONE_TRY(copy.node(n));
  std::vector<ValueId> arguments;
  for (uint32_t i : parts.passed) arguments.push_back(copy(parts.primal.inputs()[i]));
  for (size_t i = 0; i < parts.stored; ++i)
    arguments.push_back(copy(parts.primal.outputs()[outputs + i]));
  arguments.push_back(copy.target().add_constant(Tensor::scalar(loss.dtype(), 1)));
  const std::vector<ValueId> gradients = HONE_TRY(copy.append(back, arguments));
  std::vector<ValueId> results;
  for (size_t i = 0; i < outputs; ++i) results.push_back(copy(parts.primal.outputs()[i]));
  results.insert(results.end(), gradients.begin(), gradients.end());
  copy.target().set_outputs(results);
  Graph graph = std::move(copy.target());
  name_gradients(graph, source, inputs, outputs);
  Graph lean = HONE_TRY(merge_common_subexpressions(graph));
  HONE_TRY(verify(lean));
  return lean;
}

// ---- Straight through ---------------------------------------------------------------------------

// True if the values are one, or equal constants.
bool are_same(const Graph& graph, ValueId v, ValueId w) {
  if (v == w) return true;
  if (v.is_none() || w.is_none()) return false;
  const NodeId n = graph.producer(v), m = graph.producer(w);
  return is_constant(graph.opcode(n)) && is_constant(graph.opcode(m)) &&
         graph.constant(n).content_hash() == graph.constant(m).content_hash();
}

ValueId operand_of(const Graph& graph, NodeId n, size_t i) {
  return i < graph.operands(n).size() ? graph.operands(n)[i] : ValueId::none();
}

// The quantize whose integers are read by the same scale and zero point; none if n reads no such.
std::optional<NodeId> rounded_by(const Graph& graph, NodeId n) {
  if (!is_dequantize(graph.opcode(n))) return std::nullopt;
  const NodeId quantize = graph.producer(graph.operands(n)[0]);
  if (!is_quantize(graph.opcode(quantize)) || !is_integer(graph.type(graph.operands(n)[0]).dtype()))
    return std::nullopt;
  const Op back = graph.op(n), there = graph.op(quantize);
  const bool is_pair = are_same(graph, operand_of(graph, n, 1), operand_of(graph, quantize, 1)) &&
                       are_same(graph, operand_of(graph, n, 2), operand_of(graph, quantize, 2)) &&
                       back.integer("axis") == there.integer("axis") &&
                       back.integer("block") == there.integer("block") &&
                       graph.type(graph.result(n)) == graph.type(graph.operands(quantize)[0]);
  return is_pair ? std::optional(quantize) : std::nullopt;
}

// The integers q of x as reals, with the derivative of x / scale * scale where x is within their
// range. So a change of x goes through, and one of the scale counts q - zero - x / scale times.
Value straight_through(Value x, Value q, Value scale, Value zero, Op dequantize) {
  Builder& b = x.builder();
  const DType dtype = q.dtype();
  const Attrs attrs = {{"axis", dequantize.integer("axis")},
                       {"block", dequantize.integer("block")}};
  const auto reals = [&](Value integers, bool has_zero) {
    std::vector<Value> operands = {integers, scale};
    if (has_zero && zero) operands.push_back(zero);
    return b.op(Opcode::dequantize, operands, attrs);
  };
  const auto read = [&](double number, bool has_zero) {
    return reals(b.full(dtype, x.dims(), number), has_zero);
  };
  const double half = std::ldexp(1, bits(dtype) - 1);
  const double least = is_signed(dtype) ? -half : 0, most = least + 2 * half - 1;
  const Value step = read(1, false);
  const Value again = x / step * stop_gradient(step);
  const Value inside =
      binary(Opcode::and_, compare("ge", x, read(least, true)), compare("le", x, read(most, true)));
  return reals(q, true) + select(inside, again - stop_gradient(again), b.scalar(x.dtype(), 0));
}

}  // namespace

Result<Graph> with_straight_through(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    const std::optional<NodeId> pair = rounded_by(graph, n);
    if (!pair) {
      HONE_TRY(copy.node(n));
      continue;
    }
    const ValueId x = graph.operands(*pair)[0], q = graph.operands(n)[0],
                  scale = graph.operands(n)[1], zero = operand_of(graph, n, 2);
    Builder b;
    std::vector<Value> in;
    std::vector<ValueId> arguments;
    for (ValueId v : {x, q, scale, zero}) {
      if (v.is_none()) continue;
      in.push_back(b.parameter(fmt::format("p{}", in.size()), graph.type(v)));
      arguments.push_back(copy(v));
    }
    const Graph body = HONE_TRY(b.finish(
        {straight_through(in[0], in[1], in[2], zero.is_none() ? Value() : in[3], graph.op(n))}));
    copy.replace(graph.result(n), HONE_TRY(copy.append(body, arguments))[0]);
  }
  return copy.finish();
}

Result<Graph> grad(const Graph& source, uint32_t loss, const Mask& inputs) {
  HONE_TRY(check_loss(source, loss));
  // So that derivatives of composites of 16-bit reals are computed in f32, as the composites are.
  const Graph graph = HONE_TRY(with_straight_through(HONE_TRY(widen_composites(source))));
  const ValueId loss_value = graph.outputs()[loss];
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) HONE_TRY(check_path(graph, i, loss_value));
  Mask outputs(graph.outputs().size(), false);
  outputs[loss] = true;
  const Graph linearized = HONE_TRY(linearize(graph, inputs, outputs));
  const Mask tangents = with_tail(inputs.size(), count(inputs));
  const Unzipped parts = HONE_TRY(
      unzip(linearized, tangents, with_tail(outputs.size(), 1), Mask(tangents.size(), true)));
  const Graph back = HONE_TRY(transpose(
      parts.linear, with_tail(parts.passed.size() + parts.stored, count(inputs)), {true}));
  return joined(graph, parts, back, inputs, graph.type(loss_value));
}

}  // namespace hone
