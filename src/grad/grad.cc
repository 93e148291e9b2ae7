#include "grad/grad.h"

#include <algorithm>
#include <unordered_set>

#include "grad/linearize.h"
#include "grad/transpose.h"
#include "grad/unzip.h"
#include "ir/derivative.h"
#include "ir/graph_copy.h"
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

}  // namespace

Result<Graph> grad(const Graph& source, uint32_t loss, const Mask& inputs) {
  HONE_TRY(check_loss(source, loss));
  // So that derivatives of composites of 16-bit reals are computed in f32, as the composites are.
  const Graph graph = HONE_TRY(widen_composites(source));
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
