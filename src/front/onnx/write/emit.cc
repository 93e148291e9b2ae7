#include "front/onnx/write/emit.h"

#include <algorithm>
#include <functional>

#include "front/onnx/node.h"
#include "front/onnx/write/graph_writer.h"
#include "front/onnx/write/registry.h"
#include "tensor/counting.h"
#include "tensor/dim_compute.h"

namespace hone::onnx_io {
namespace {

constexpr ExportRow kExportRows[] = {
#define HONE_EXPORT(opcode, since, function) {Opcode::opcode, since, &function},
#include "front/onnx/write/exports.def"
};

}  // namespace

const ExportRow* find_export(Opcode opcode, int opset) {
  const ExportRow* best = nullptr;
  for (const ExportRow& row : kExportRows)
    if (row.opcode == opcode && row.since <= opset && (best == nullptr || row.since > best->since))
      best = &row;
  return best;
}

Emit::Emit(GraphWriter& writer, const Graph& graph, NodeId node)
    : writer_(writer), graph_(graph), node_(node) {}

bool Emit::has(size_t i) const {
  std::span<const ValueId> operands = graph_.operands(node_);
  return i < operands.size() && !operands[i].is_none();
}

std::string Emit::in(size_t i) const {
  return has(i) ? writer_.value(graph_.operands(node_)[i]) : std::string();
}

Names Emit::all() const {
  Names names;
  for (size_t i = 0; i < operands(); ++i) names.push_back(in(i));
  return names;
}

namespace {

// True for each dim in which a broadcast operand already has its size.
std::vector<bool> full_dims(const Graph& graph, NodeId broadcast) {
  const Type from = graph.operand_types(broadcast)[0], to = graph.type(graph.result(broadcast));
  const Ints& map = graph.op(broadcast).ints("map");
  std::vector<bool> full(static_cast<size_t>(to.rank()));
  for (size_t i = 0; i < map.size(); ++i)
    full[static_cast<size_t>(map[i])] =
        from.dim(static_cast<int>(i)) == to.dim(static_cast<int>(map[i]));
  return full;
}

}  // namespace

Names Emit::elementwise() const {
  Names names;
  std::vector<bool> full(static_cast<size_t>(result_type().rank()));  // dims that an operand has
  for (size_t i = 0; i < operands(); ++i) {
    const ValueId v = graph_.operands(node_)[i];
    const std::string before = writer_.repeated(v);
    names.push_back(before.empty() ? in(i) : before);
    if (!before.empty()) {
      const std::vector<bool> own = full_dims(graph_, graph_.producer(v));
      std::transform(full.begin(), full.end(), own.begin(), full.begin(), std::logical_or<>());
    } else if (type(i).rank() == result_type().rank()) {
      full.assign(full.size(), true);
    }
  }
  const bool are_full = std::all_of(full.begin(), full.end(), [](bool is) { return is; });
  if (!are_full && !names.empty()) names[0] = in(0);  // which has every dim after Expand
  return names;
}

Type Emit::type(size_t i) const { return graph_.type(graph_.operands(node_)[i]); }
Type Emit::result_type(size_t i) const { return graph_.type(graph_.result(node_, i)); }
int Emit::opset() const { return writer_.file().opset; }

// ---- Nodes of the file -------------------------------------------------------------------------

std::string Emit::node(std::string_view op, Names inputs, Attributes attributes) {
  return nodes(op, std::move(inputs), 1, std::move(attributes))[0];
}

Names Emit::nodes(std::string_view op, Names inputs, size_t results, Attributes attributes) {
  std::string wish(graph_.name(graph_.result(node_)));
  wish += wish.empty() ? std::string(op) : fmt::format(".{}", op);
  Names outputs;
  for (size_t i = 0; i < results; ++i) outputs.push_back(writer_.file().fresh_name(wish));
  writer_.node(op, inputs, outputs, attributes, outputs.front());
  return outputs;
}

bool Emit::result(std::string_view op, Names inputs, Attributes attributes) {
  std::string name = writer_.result_name(graph_.result(node_));
  writer_.node(op, inputs, {name}, attributes, name);
  return true;
}

bool Emit::results(std::string_view op, Names inputs, Attributes attributes) {
  Names outputs;
  for (ValueId v : graph_.results(node_)) outputs.push_back(writer_.result_name(v));
  writer_.node(op, inputs, outputs, attributes, outputs.front());
  return true;
}

bool Emit::result_is(const std::string& value, size_t i) {
  std::string name = writer_.result_name(graph_.result(node_, i));
  writer_.node("Identity", {value}, {name}, {}, name);
  return true;
}

// ---- Constants and sizes -----------------------------------------------------------------------

std::string Emit::constant(const Tensor& tensor) { return writer_.constant(tensor, ""); }
std::string Emit::scalar(DType dtype, double value) {
  return constant(Tensor::scalar(dtype, value));
}
std::string Emit::ints(const Ints& numbers) {
  Type type = Type::get(DType::i64, {static_cast<int64_t>(numbers.size())});
  return constant(Tensor::from_integers(type, numbers));
}
std::string Emit::integer(int64_t number) {
  return constant(Tensor::from_integers(Type::scalar(DType::i64), Ints{number}));
}

std::string Emit::dims(std::span<const Dim> dims) {
  Ints numbers;
  for (Dim dim : dims)
    if (dim.is_static()) numbers.push_back(dim.value());
  if (numbers.size() == dims.size()) return ints(numbers);
  Names parts;
  for (Dim dim : dims) parts.push_back(this->dim(dim));
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
}

namespace {

// All values are i64[1].
struct NodeAlgebra {
  Emit& emit;
  GraphWriter& writer;

  std::string number(int64_t value) { return emit.ints({value}); }
  std::string symbol(Symbol symbol) { return writer.size_of(symbol); }
  std::string add(const std::string& a, const std::string& b) { return emit.node("Add", {a, b}); }
  std::string multiply(const std::string& a, const std::string& b) {
    return emit.node("Mul", {a, b});
  }
  // Div rounds toward zero.
  std::string divide(const std::string& a, int64_t low, int64_t positive) {
    const int64_t lift = lift_of(low, positive);
    if (lift == 0) return emit.node("Div", {a, number(positive)});
    if (lift > kDimLimit / positive)
      emit.unsupported("a size that can be {} is divided by {}", low, positive);
    std::string quotient = emit.node("Div", {add(a, number(lift * positive)), number(positive)});
    return add(quotient, number(-lift));
  }
};

}  // namespace

std::string Emit::dim(Dim dim) {
  NodeAlgebra algebra{*this, writer_};
  return compute_dim(dim, algebra);
}

// ---- Common forms ------------------------------------------------------------------------------

std::string Emit::cast(const std::string& value, DType dtype) {
  return node("Cast", {value}, {{"to", int64_t{data_type_of(dtype)}}});
}

std::string Emit::transpose(const std::string& value, const Ints& permutation) {
  const Ints identity = counting(0, static_cast<int64_t>(permutation.size()));
  return permutation == identity ? value : node("Transpose", {value}, {{"perm", permutation}});
}

// Sizes of 0 are meant as they are.
std::string Emit::reshape(const std::string& value, std::span<const Dim> dims) {
  Attributes attributes;
  for (Dim dim : dims)
    if (dim.range().low == 0 && opset() >= 14) attributes = {{"allowzero", int64_t{1}}};
  return node("Reshape", {value, this->dims(dims)}, attributes);
}

std::string Emit::squeeze(const std::string& value, const Ints& axes) {
  return node("Squeeze", {value, ints(axes)});
}
std::string Emit::unsqueeze(const std::string& value, const Ints& axes) {
  return node("Unsqueeze", {value, ints(axes)});
}

// ---- Other ops of hone -------------------------------------------------------------------------

Graph Emit::built(const Spelling& make) {
  Builder b("spelled");
  std::vector<Value> operands;
  for (size_t i = 0; i < this->operands(); ++i)
    operands.push_back(has(i) ? b.parameter("", type(i)) : Value());
  const std::vector<Value> results = make(b, operands);
  Result<Graph> graph = b.finish(results);
  if (!graph.ok()) throw Failure{std::move(graph).error()};
  return std::move(*graph);
}

Names Emit::values_of(const Spelling& make) {
  Names arguments = all();
  std::erase(arguments, "");
  return writer_.inlined(built(make), arguments);
}

bool Emit::spelled(const Spelling& make) {
  Names arguments = all(), wanted;
  std::erase(arguments, "");
  for (ValueId v : graph_.results(node_)) wanted.push_back(writer_.result_name(v));
  writer_.inlined(built(make), arguments, wanted);
  return true;
}

std::optional<Dims> Emit::known(size_t i) const {
  return writer_.contents().of(graph_.operands(node_)[i]);
}

std::optional<NodeId> Emit::maker(size_t i, Opcode opcode) const {
  const NodeId node = graph_.producer(graph_.operands(node_)[i]);
  return graph_.opcode(node) == opcode ? std::optional(node) : std::nullopt;
}

std::optional<Tensor> Emit::repeated_constant(size_t i) const {
  ValueId v = graph_.operands(node_)[i];
  while (graph_.opcode(graph_.producer(v)) == Opcode::broadcast)
    v = graph_.operands(graph_.producer(v))[0];
  return writer_.contents().constant(v);
}

const PackedProduct* Emit::packed() const { return writer_.packed(node_); }

void Emit::repeats(const std::string& value) { writer_.set_repeated(graph_.result(node_), value); }

std::string Emit::value(ValueId v) const { return writer_.value(v); }

bool Emit::is_within(size_t i, Dim size) const {
  const std::optional<Dims> elements = known(i);
  return elements && std::all_of(elements->begin(), elements->end(),
                                 [&](Dim d) { return provably_le(0, d) && provably_lt(d, size); });
}

Names Emit::inlined(const Graph& region, const Names& arguments, const Names& wanted) {
  return writer_.inlined(region, arguments, wanted);
}

onnx::GraphProto Emit::subgraph(const Graph& region, size_t own, const Names& bound) {
  onnx::GraphProto proto;
  FileWriter& file = writer_.file();
  proto.set_name(file.fresh_name(region.name()));
  GraphWriter inner(file, proto, &writer_);
  Names arguments;
  for (size_t i = 0; i < own; ++i) {
    arguments.push_back(file.fresh_name(region.name(region.inputs()[i])));
    fill_value_info(*proto.add_input(), arguments.back(), region.type(region.inputs()[i]));
  }
  arguments.insert(arguments.end(), bound.begin(), bound.end());
  Names wanted;
  for (ValueId v : region.outputs()) wanted.push_back(file.fresh_name(region.name(v)));
  inner.inlined(region, arguments, wanted);
  for (size_t i = 0; i < wanted.size(); ++i)
    fill_value_info(*proto.add_output(), wanted[i], region.type(region.outputs()[i]));
  return proto;
}

}  // namespace hone::onnx_io
