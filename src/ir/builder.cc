#include "ir/builder.h"

#include <algorithm>

namespace hone {

Type Value::type() const {
  HONE_CHECK(builder_ != nullptr, "an absent value has no type");
  return builder_->graph_.type(id_);
}

Dim Value::dim(int axis) const {
  int r = rank();
  if (axis < -r || axis >= r) {
    builder_->fail(bad_input("dim {} of a value of rank {}", axis, r));
    return 1;
  }
  return type().dim(axis < 0 ? axis + r : axis);
}

Dims Value::dims() const { return {type().dims().begin(), type().dims().end()}; }

Value Value::named(std::string_view name) const {
  if (builder_->ok()) builder_->graph_.set_name(id_, builder_->scoped(name));
  return *this;
}

std::string Builder::scoped(std::string_view name) const {
  return name.empty() ? std::string() : prefix_ + std::string(name);
}

void Builder::fail(Error error) {
  if (!error_.ok()) return;
  error_ = std::move(error);
  if (on_failure_) on_failure_(error_.error());
}

// This value stands for every other one after an error, so that building code needs no checks.
Value Builder::poison() {
  HONE_CHECK(!error_.ok(), "poison without an error");
  return {this, graph_.add_constant(Tensor::zeros(Type::scalar(DType::f32)))};
}

Value Builder::parameter(std::string_view name, Type type) {
  return {this, graph_.add_parameter(type, scoped(name))};
}

Value Builder::parameter(std::string_view name, DType dtype, const Dims& dims) {
  Result<Type> type = Type::make(dtype, dims);
  if (type.ok()) return parameter(name, *type);
  fail(std::move(type).error().within(fmt::format("parameter '{}'", name)));
  return poison();
}

Value Builder::constant(Tensor value, std::string_view name) {
  return {this, graph_.add_constant(std::move(value), scoped(name))};
}

Value Builder::scalar(DType dtype, double value) { return constant(Tensor::scalar(dtype, value)); }

Value Builder::full(DType dtype, const Dims& dims, double value) {
  return op(Opcode::broadcast, {scalar(dtype, value)}, {{"dims", dims}, {"map", Ints{}}});
}

std::vector<Value> Builder::ops(Op op, std::span<const Value> operands,
                                std::vector<GraphRef> regions) {
  std::vector<ValueId> ids;
  ids.reserve(operands.size());
  for (Value v : operands) {
    HONE_CHECK(!v || &v.builder() == this, "{}: operand of another builder", op.name());
    ids.push_back(v ? v.id() : ValueId::none());
  }
  if (error_.ok()) {
    Result<NodeId> node = graph_.append(op, ids, std::move(regions));
    if (node.ok()) {
      std::vector<Value> values;
      for (ValueId v : graph_.results(*node)) values.push_back({this, v});
      return values;
    }
    Error error = std::move(node).error();
    if (!prefix_.empty()) error = std::move(error).within(prefix_.substr(0, prefix_.size() - 1));
    fail(std::move(error));
  }
  // As many results as the op could have: callers index them.
  return std::vector<Value>(std::max<size_t>(operands.size(), 8), poison());
}

std::vector<Value> Builder::ops(Opcode opcode, std::span<const Value> operands, Attrs attrs,
                                std::vector<GraphRef> regions) {
  Result<Op> made = Op::make(opcode, std::move(attrs));
  if (!made.ok()) {
    fail(std::move(made).error());
    return std::vector<Value>(std::max<size_t>(operands.size(), 8), poison());
  }
  return ops(*made, operands, std::move(regions));
}

Value Builder::op(Opcode opcode, std::span<const Value> operands, Attrs attrs) {
  return ops(opcode, operands, std::move(attrs)).front();
}

GraphRef Builder::region(std::string_view name, std::span<const Type> parameters,
                         const Body& body) {
  Builder inner(name);
  std::vector<Value> arguments;
  for (Type type : parameters) arguments.push_back(inner.parameter("", type));
  std::vector<Value> outputs = body(inner, arguments);
  Result<Graph> graph = inner.finish(outputs);
  if (!graph.ok()) {
    fail(std::move(graph).error().within(fmt::format("region '{}'", name)));
    return std::make_shared<Graph>(std::string(name));
  }
  return std::make_shared<Graph>(std::move(*graph));
}

std::vector<Value> Builder::inlined(const Graph& graph, std::span<const Value> arguments) {
  HONE_CHECK(arguments.size() == graph.inputs().size(), "graph '{}' takes {} inputs, {} given",
             graph.name(), graph.inputs().size(), arguments.size());
  std::vector<Value> values(graph.value_count());
  for (size_t i = 0; i < arguments.size(); ++i) values[graph.inputs()[i].index] = arguments[i];
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::parameter) continue;
    if (graph.opcode(n) == Opcode::constant) {
      values[graph.result(n).index] = constant(graph.constant(n));
      continue;
    }
    std::vector<Value> operands;
    for (ValueId v : graph.operands(n)) operands.push_back(v.is_none() ? Value() : values[v.index]);
    std::span<const GraphRef> regions = graph.regions(n);
    std::vector<Value> results = ops(graph.op(n), operands, {regions.begin(), regions.end()});
    for (size_t i = 0; i < graph.results(n).size(); ++i)
      values[graph.result(n, i).index] = ok() ? results[i] : results.front();
  }
  std::vector<Value> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(values[v.index]);
  return outputs;
}

void Builder::donate(Value input, int output) { donations_.emplace_back(input, output); }

Builder::Scope Builder::scope(std::string_view name) { return Scope(*this, name); }

Builder::Scope::Scope(Builder& builder, std::string_view name)
    : builder_(builder), size_(builder.prefix_.size()) {
  builder_.prefix_ += name;
  builder_.prefix_ += '/';
}

Result<Graph> Builder::finish(std::span<const Value> outputs) {
  if (!error_.ok()) {
    Error error = error_.error();
    return std::move(error).within(fmt::format("graph '{}'", graph_.name()));
  }
  std::vector<ValueId> ids;
  for (Value v : outputs) {
    HONE_CHECK(v && &v.builder() == this, "an output of another builder");
    ids.push_back(v.id());
  }
  graph_.set_outputs(std::move(ids));
  for (auto [input, output] : donations_) {
    auto at = std::find(graph_.inputs().begin(), graph_.inputs().end(), input.id());
    HONE_CHECK(at != graph_.inputs().end(), "only an input can be donated");
    graph_.add_donation(static_cast<uint32_t>(at - graph_.inputs().begin()),
                        static_cast<uint32_t>(output));
  }
  HONE_TRY(verify(graph_));
  return std::move(graph_);
}

}  // namespace hone
