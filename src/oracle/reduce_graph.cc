#include "oracle/reduce_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "zoo/random/random_graph.h"

namespace hone {
namespace {

// Each value that has a name, as the reference computes it.
std::map<std::string, Tensor, std::less<>> values_of(const DifferentialCase& one) {
  Graph graph = one.graph;
  std::vector<ValueId> all;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    all.push_back(ValueId{i});
    names.emplace_back(graph.name(ValueId{i}));
  }
  graph.set_outputs(all);
  std::map<std::string, Tensor, std::less<>> values;
  const Result<std::vector<Tensor>> tensors =
      evaluate(graph, one.inputs, {.numerics = Numerics::rounded});
  if (!tensors.ok()) return values;
  for (size_t i = 0; i < all.size(); ++i) values.emplace(names[i], (*tensors)[i]);
  return values;
}

// The live nodes that the outputs need, without looking behind `cut`.
std::vector<NodeId> needed(const Graph& graph, const std::vector<ValueId>& outputs, NodeId cut) {
  std::vector<bool> is_needed(graph.node_count());
  for (ValueId v : outputs) is_needed[graph.producer(v).index] = true;
  std::vector<NodeId> nodes;
  for (uint32_t i = static_cast<uint32_t>(graph.node_count()); i-- > 0;) {
    const NodeId n{i};
    if (!is_needed[i] || n == cut || !is_computed(graph, n)) continue;
    nodes.push_back(n);
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) is_needed[graph.producer(v).index] = true;
  }
  std::ranges::reverse(nodes);
  return nodes;
}

std::vector<ValueId> outputs_of(const Graph& graph) {
  return {graph.outputs().begin(), graph.outputs().end()};
}

bool has_node(const std::vector<NodeId>& nodes, const Graph& graph, ValueId v) {
  return std::ranges::binary_search(nodes, graph.producer(v));
}

}  // namespace

bool is_computed(const Graph& graph, NodeId node) { return !is_leaf(graph.opcode(node)); }

std::optional<GraphWithInputs> part_of(const DifferentialCase& one,
                                       const std::vector<NodeId>& nodes,
                                       const std::vector<ValueId>& outputs) {
  std::vector<ValueId> kept;
  for (ValueId v : outputs)
    if (has_node(nodes, one.graph, v)) kept.push_back(v);
  if (kept.empty()) return std::nullopt;
  Result<Graph> part = extract_subgraph(one.graph, nodes, kept);
  if (!part.ok()) return std::nullopt;
  part->set_name(one.graph.name());
  GraphWithInputs result{std::move(*part), {}};
  const auto values = values_of(one);
  std::vector<Type> types;
  for (ValueId v : result.graph.inputs()) {
    const auto value = values.find(result.graph.name(v));
    if (value == values.end()) return std::nullopt;
    result.inputs.push_back(value->second);
    types.push_back(value->second.type());
  }
  if (!bind_inputs(result.graph, types).ok()) return std::nullopt;
  return result;
}

std::optional<GraphWithInputs> with_outputs(const DifferentialCase& one,
                                            const std::vector<ValueId>& outputs) {
  return part_of(one, needed(one.graph, outputs, NodeId()), outputs);
}

std::optional<GraphWithInputs> without_node(const DifferentialCase& one, NodeId node) {
  const std::vector<ValueId> outputs = outputs_of(one.graph);
  return part_of(one, needed(one.graph, outputs, node), outputs);
}

std::optional<GraphWithInputs> without_output_node(const DifferentialCase& one, NodeId node) {
  std::vector<ValueId> outputs;
  for (ValueId v : one.graph.outputs())
    if (one.graph.producer(v) != node) outputs.push_back(v);
  if (outputs.size() == one.graph.outputs().size()) return std::nullopt;
  for (ValueId v : one.graph.operands(node))
    if (!v.is_none() && is_computed(one.graph, one.graph.producer(v)) &&
        std::ranges::find(outputs, v) == outputs.end())
      outputs.push_back(v);
  return with_outputs(one, outputs);
}

std::optional<GraphWithInputs> region_of(const DifferentialCase& one, const RegionRef& region) {
  if (!region.graph->is_static()) return std::nullopt;
  Graph graph = *region.graph;
  graph.set_name(one.graph.name());
  std::vector<Tensor> inputs = random_graph_inputs(graph, 0);
  return GraphWithInputs{std::move(graph), std::move(inputs)};
}

std::optional<GraphWithInputs> with_numbers(const DifferentialCase& one) {
  std::vector<Type> types;
  for (const Tensor& input : one.inputs) types.push_back(input.type());
  const Result<Bindings> sizes = bind_inputs(one.graph, types);
  if (!sizes.ok() || sizes->empty()) return std::nullopt;
  Result<Graph> graph = specialize(one.graph, *sizes);
  if (!graph.ok()) return std::nullopt;
  return GraphWithInputs{std::move(*graph), one.inputs};
}

// ---- Sizes --------------------------------------------------------------------------------------

std::vector<int64_t> sizes_of(const Graph& graph) {
  std::set<int64_t> sizes;
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    for (Dim dim : graph.type(ValueId{i}).dims())
      if (dim.is_static() && dim.value() > 1) sizes.insert(dim.value());
  return {sizes.begin(), sizes.end()};
}

namespace {

class Resizing {
 public:
  Resizing(int64_t size, int64_t smaller) : size_(size), smaller_(smaller) {}

  Dims dims(std::span<const Dim> all) const {
    Dims changed(all.begin(), all.end());
    for (Dim& dim : changed)
      if (dim.is(size_)) dim = smaller_;
    return changed;
  }

  Tensor cut(const Tensor& tensor) const {
    const Type type = tensor.type().with_dims(dims(tensor.type().dims()));
    if (type == tensor.type()) return tensor;
    Graph graph;
    const ValueId x = graph.add_parameter(tensor.type());
    const Dims start(static_cast<size_t>(type.rank()), 0),
        limit(type.dims().begin(), type.dims().end());
    const NodeId slice =
        graph.append(Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}), {{x}}).value();
    graph.set_outputs({graph.result(slice)});
    return evaluate(graph, {{tensor}}, {.numerics = Numerics::rounded}).value()[0];
  }

  Op op(Op op) const {
    Attrs attrs;
    for (size_t i = 0; i < op.attrs().size(); ++i) {
      AttrValue value = op.attrs()[i];
      if (Dims* sizes = std::get_if<Dims>(&value)) *sizes = dims(*sizes);
      attrs.emplace_back(op.def().attrs[i].name, std::move(value));
    }
    const Result<Op> changed = Op::make(op.opcode(), std::move(attrs));
    return changed.ok() ? *changed : op;
  }

 private:
  const int64_t size_, smaller_;
};

}  // namespace

std::optional<GraphWithInputs> with_size(const DifferentialCase& one, int64_t size,
                                         int64_t smaller) {
  if (!one.graph.is_static()) return std::nullopt;
  const Resizing resizing(size, smaller);
  const Graph& from = one.graph;
  GraphWithInputs result{Graph(from.name()), {}};
  std::vector<ValueId> map(from.value_count());
  for (NodeId n : from.nodes()) {
    if (!from.regions(n).empty()) return std::nullopt;
    if (is_parameter(from.opcode(n))) {
      const ValueId v = from.result(n);
      result.inputs.push_back(resizing.cut(one.inputs[result.inputs.size()]));
      map[v.index] = result.graph.add_parameter(result.inputs.back().type(), from.name(v));
    } else if (is_constant(from.opcode(n))) {
      const ValueId v = from.result(n);
      map[v.index] = result.graph.add_constant(resizing.cut(from.constant(n)), from.name(v));
    } else {
      std::vector<ValueId> operands;
      for (ValueId v : from.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
      const Result<NodeId> node = result.graph.append(resizing.op(from.op(n)), operands);
      if (!node.ok()) return std::nullopt;
      for (size_t i = 0; i < from.results(n).size(); ++i) {
        map[from.result(n, i).index] = result.graph.result(*node, i);
        result.graph.set_name(result.graph.result(*node, i), from.name(from.result(n, i)));
      }
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId v : from.outputs()) outputs.push_back(map[v.index]);
  result.graph.set_outputs(std::move(outputs));
  return result;
}

}  // namespace hone
