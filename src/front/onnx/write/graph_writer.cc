#include "front/onnx/write/graph_writer.h"

#include <algorithm>

#include "front/onnx/node.h"
#include "front/onnx/write/registry.h"
#include "ir/application.h"

namespace hone::onnx_io {

std::string FileWriter::fresh_name(std::string_view wish) {
  std::string base(wish.empty() ? "value" : wish), name = base;
  for (int64_t& count = counts[base]; !names.insert(name).second;)
    name = fmt::format("{}_{}", base, ++count + 1);
  return name;
}

std::string FileWriter::claim(std::string_view wish) {
  if (reserved.erase(std::string(wish)) > 0) return std::string(wish);
  return fresh_name(wish);
}

// ---- Nodes -------------------------------------------------------------------------------------

void fill_attribute(onnx::AttributeProto& proto, const Attribute& attribute) {
  proto.set_name(std::string(attribute.name));
  struct Fill {
    onnx::AttributeProto& p;
    void operator()(int64_t v) const {
      p.set_type(onnx::AttributeProto::INT);
      p.set_i(v);
    }
    void operator()(double v) const {
      p.set_type(onnx::AttributeProto::FLOAT);
      p.set_f(static_cast<float>(v));
    }
    void operator()(std::string_view v) const {
      p.set_type(onnx::AttributeProto::STRING);
      p.set_s(std::string(v));
    }
    void operator()(const Ints& v) const {
      p.set_type(onnx::AttributeProto::INTS);
      p.mutable_ints()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<double>& v) const {
      p.set_type(onnx::AttributeProto::FLOATS);
      for (double x : v) p.add_floats(static_cast<float>(x));
    }
    void operator()(const std::vector<std::string>& v) const {
      p.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& x : v) p.add_strings(x);
    }
    void operator()(onnx::GraphProto* v) const {
      p.set_type(onnx::AttributeProto::GRAPH);
      p.mutable_g()->Swap(v);
    }
  };
  std::visit(Fill{proto}, attribute.value);
}

onnx::NodeProto& GraphWriter::node(std::string_view op, const Names& inputs, const Names& outputs,
                                   const Attributes& attributes, std::string_view wish) {
  onnx::NodeProto& node = *proto_.add_node();
  size_t dot = op.rfind('.');
  if (dot != std::string_view::npos) {
    node.set_domain(std::string(op.substr(0, dot)));
    file_.domains.try_emplace(node.domain(), 1);
  }
  node.set_op_type(std::string(op.substr(dot == std::string_view::npos ? 0 : dot + 1)));
  node.set_name(file_.fresh_name(fmt::format("{}_node", wish)));
  size_t used = inputs.size();
  while (used > 0 && inputs[used - 1].empty()) --used;
  for (size_t i = 0; i < used; ++i) node.add_input(inputs[i]);
  for (const std::string& output : outputs) node.add_output(output);
  for (const Attribute& attribute : attributes) fill_attribute(*node.add_attribute(), attribute);
  return node;
}

std::string GraphWriter::constant(const Tensor& tensor, std::string_view wish) {
  auto [at, is_new] = file_.constants.emplace(tensor.content_hash(), "");
  if (!is_new) return at->second;
  std::string name = file_.fresh_name(wish.empty() ? "constant" : wish);
  at->second = name;
  onnx::TensorProto& proto = *file_.root->add_initializer();
  proto.set_name(name);
  file_.large.emplace_back(&proto, tensor);
  return name;
}

void fill_value_info(onnx::ValueInfoProto& info, std::string_view name, Type type) {
  info.set_name(std::string(name));
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(data_type_of(type.dtype()));
  tensor.mutable_shape();  // rank 0 has a shape too
  for (Dim dim : type.dims()) {
    onnx::TensorShapeProto::Dimension& size = *tensor.mutable_shape()->add_dim();
    if (dim.is_static())
      size.set_dim_value(dim.value());
    else
      size.set_dim_param(dim.to_string());
  }
}

// ---- Graphs ------------------------------------------------------------------------------------

void GraphWriter::find_symbols(Scope& scope, const Names& arguments) {
  const Graph& graph = *scope.graph;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Type type = graph.type(graph.inputs()[i]);
    for (int axis = 0; axis < type.rank(); ++axis)
      if (const std::optional<LinearDim> size = as_linear(type.dim(axis)))
        scope.symbols.try_emplace(size->symbol.name(), TellingAxis{arguments[i], axis, *size});
  }
}

void GraphWriter::find_packed(Scope& scope) const {
  const Graph& graph = *scope.graph;
  scope.needed.assign(graph.node_count(), true);
  if (file_.primitives) return;
  for (NodeId n : graph.nodes())
    if (std::optional<PackedProduct> found = packed_product(graph, n))
      scope.packed.emplace(n, *std::move(found));
  if (!scope.packed.empty()) scope.needed = needed_beside_weights(graph, scope.packed);
}

const PackedProduct* GraphWriter::packed(NodeId product) const {
  const auto at = scopes_.back().packed.find(product);
  return at == scopes_.back().packed.end() ? nullptr : &at->second;
}

Names GraphWriter::inlined(const Graph& graph, const Names& arguments, const Names& wanted) {
  Scope scope;
  scope.graph = &graph;
  scope.names.resize(graph.value_count());
  scope.contents = std::make_unique<Contents>(graph);
  for (size_t i = 0; i < arguments.size(); ++i) scope.names[graph.inputs()[i].index] = arguments[i];
  find_symbols(scope, arguments);
  for (size_t i = 0; i < wanted.size(); ++i) {
    ValueId v = graph.outputs()[i];
    bool is_made_here = graph.opcode(graph.producer(v)) != Opcode::parameter &&
                        graph.opcode(graph.producer(v)) != Opcode::constant;
    if (is_made_here && scope.names[v.index].empty()) scope.names[v.index] = wanted[i];
  }
  find_packed(scope);
  scopes_.push_back(std::move(scope));
  for (NodeId n : graph.nodes())
    if (scopes_.back().needed[n.index]) write_node(graph, n);
  Names outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(value(v));
  scopes_.pop_back();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (outputs[i] == wanted[i]) continue;
    node("Identity", {outputs[i]}, {wanted[i]}, {}, wanted[i]);
    outputs[i] = wanted[i];
  }
  return outputs;
}

std::string GraphWriter::value(ValueId v) const {
  return v.is_none() ? std::string() : scopes_.back().names[v.index];
}

std::string GraphWriter::result_name(ValueId v) {
  std::string& name = scopes_.back().names[v.index];
  if (name.empty()) name = file_.fresh_name(scopes_.back().graph->name(v));
  return name;
}

void GraphWriter::set_value(ValueId v, std::string name) {
  scopes_.back().names[v.index] = std::move(name);
}

std::string GraphWriter::repeated(ValueId v) const {
  const auto at = scopes_.back().repeated.find(v.index);
  return at == scopes_.back().repeated.end() ? std::string() : at->second;
}

void GraphWriter::set_repeated(ValueId v, std::string name) {
  scopes_.back().repeated.insert_or_assign(v.index, std::move(name));
}

namespace {

// The opset that brought the element type.
int since(DType dtype) {
  if (!is_storage_only(dtype)) return 13;
  if (dtype == DType::f4e2m1) return 23;
  if (dtype == DType::f8e8m0) return 24;
  if (is_real(dtype)) return 19;
  return bits(dtype) == 4 ? 21 : 25;
}

void check_type(Type type, int opset) {
  if (since(type.dtype()) > opset)
    throw Failure{unsupported("{} came with opset {}", name(type.dtype()), since(type.dtype()))
                      .within(type.to_string())};
}

}  // namespace

void GraphWriter::write_node(const Graph& graph, NodeId n) {
  Opcode opcode = graph.opcode(n);
  for (ValueId v : graph.results(n)) check_type(graph.type(v), file_.opset);
  if (opcode == Opcode::parameter) return;
  if (opcode == Opcode::constant) {
    ValueId v = graph.result(n);
    set_value(v, constant(graph.constant(n), graph.name(v)));
    return;
  }
  try {
    Emit emit(*this, graph, n);
    const ExportRow* row = find_export(opcode, file_.opset);
    bool is_spelled_out = file_.primitives && is_composite(opcode);
    if (row != nullptr && !is_spelled_out && row->write(emit)) return;
    if (!is_composite(opcode)) emit.unsupported("ONNX has no form for it");
    write_expansion(graph, n);
  } catch (Failure& failure) {
    throw Failure{std::move(failure.error).within(graph.describe(n))};
  }
}

void GraphWriter::write_expansion(const Graph& graph, NodeId n) {
  Result<Graph> spelled_out = expansion(graph.op(n), graph.operand_types(n));
  if (!spelled_out.ok()) throw Failure{std::move(spelled_out).error()};
  Names arguments;
  for (ValueId v : graph.operands(n))
    if (!v.is_none()) arguments.push_back(value(v));
  Names wanted;
  for (ValueId v : graph.results(n)) wanted.push_back(result_name(v));
  inlined(*spelled_out, arguments, wanted);
}

std::string GraphWriter::size_of(Symbol symbol) {
  // Symbols of an expansion are those of the graph around it.
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    auto size = scope.sizes.find(symbol.name());
    if (size != scope.sizes.end()) return size->second;
    if (auto at = scope.symbols.find(symbol.name()); at != scope.symbols.end()) {
      return scope.sizes[symbol.name()] = solved_size(at->second);
    }
  }
  if (around_ != nullptr) return around_->size_of(symbol);
  throw Failure{unsupported("no input tells what the symbol {} is", symbol.name())};
}

std::string GraphWriter::solved_size(const TellingAxis& telling) {
  const LinearDim& linear = telling.size;
  auto number = [&](int64_t n) {
    return constant(Tensor::from_integers(Type::get(DType::i64, {1}), Ints{n}), "");
  };
  const std::string& name = linear.symbol.name();
  std::string size = written_size(telling.value, telling.axis, name);
  auto then = [&](std::string_view op, int64_t by, int64_t neutral) {
    if (by == neutral) return;
    const std::string result = file_.fresh_name(name);
    node(op, {size, number(by)}, {result}, {}, result);
    size = result;
  };
  then("Sub", linear.offset, 0);
  then("Div", linear.factor, 1);  // without a rest
  then("Mul", linear.step, 1);
  return size;
}

std::string GraphWriter::written_size(const std::string& value, int axis, std::string_view wish) {
  const std::string size = file_.fresh_name(wish);
  if (file_.opset >= 15) {
    node("Shape", {value}, {size}, {{"start", int64_t{axis}}, {"end", int64_t{axis} + 1}}, size);
    return size;
  }
  const std::string shape = file_.fresh_name(fmt::format("{}_shape", wish));
  node("Shape", {value}, {shape}, {}, shape);
  const Tensor index = Tensor::from_integers(Type::get(DType::i64, {1}), Ints{axis});
  node("Gather", {shape, constant(index, "axis")}, {size}, {{"axis", int64_t{0}}}, size);
  return size;
}

// ---- Segments ----------------------------------------------------------------------------------

void GraphWriter::segments(const std::vector<Segment>& list, Values& values) {
  for (const Segment& s : list)
    std::visit([&](const auto& kind) { segment(kind, values); }, s.kind);
}

void GraphWriter::segment(const GraphSegment& segment, Values& values) {
  Names arguments;
  for (const std::string& name : segment.inputs) arguments.push_back(values.at(name));
  Names wanted;
  std::map<uint32_t, int> cuts;  // of each output, still to be made
  for (const Crop& crop : segment.crops) ++cuts[crop.output];
  auto room = [&](uint32_t i) { return file_.fresh_name(segment.outputs[i] + "_room"); };
  for (uint32_t i = 0; i < segment.outputs.size(); ++i) {
    const std::string& name = segment.outputs[i];
    wanted.push_back(cuts.contains(i) ? room(i) : file_.claim(name.empty() ? "unused" : name));
  }
  Names outputs = inlined(*segment.graph, arguments, wanted);
  auto number = [&](int64_t v) {
    return constant(Tensor::from_integers(Type::get(DType::i64, {1}), Ints{v}), "");
  };
  for (const Crop& crop : segment.crops) {
    std::string as_i64 = file_.fresh_name("count"), limit = file_.fresh_name("limit");
    node("Cast", {outputs[crop.count]}, {as_i64}, {{"to", int64_t{data_type_of(DType::i64)}}},
         as_i64);
    node("Reshape", {as_i64, number(1)}, {limit}, {}, limit);
    const bool is_last = --cuts[crop.output] == 0;
    std::string result = is_last ? file_.claim(segment.outputs[crop.output]) : room(crop.output);
    node("Slice", {outputs[crop.output], number(0), limit, number(crop.axis)}, {result}, {},
         result);
    outputs[crop.output] = result;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!segment.outputs[i].empty()) values[segment.outputs[i]] = outputs[i];
}

namespace {

// A subgraph that holds a body of segments; its results are outputs of new names.
onnx::GraphProto write_body(FileWriter& file, const Body& body, GraphWriter::Values values) {
  onnx::GraphProto proto;
  proto.set_name(file.fresh_name("body"));
  GraphWriter writer(file, proto);
  writer.segments(body.segments, values);
  for (const std::string& name : body.results) {
    std::string output = file.fresh_name(name);
    writer.node("Identity", {values.at(name)}, {output}, {}, output);
    proto.add_output()->set_name(output);
  }
  return proto;
}

}  // namespace

void GraphWriter::segment(const IfSegment& segment, Values& values) {
  onnx::GraphProto on_true = write_body(file_, segment.on_true, values);
  onnx::GraphProto on_false = write_body(file_, segment.on_false, values);
  Names results;
  for (const std::string& name : segment.results) results.push_back(file_.claim(name));
  node("If", {values.at(segment.condition)}, results,
       {{"then_branch", &on_true}, {"else_branch", &on_false}}, "if");
  for (size_t i = 0; i < results.size(); ++i) values[segment.results[i]] = results[i];
}

// A value that grows is carried and joined with its piece, since pieces may differ in length.
void GraphWriter::segment(const LoopSegment& loop, Values& values) {
  auto read = [&](const std::string& name) { return name.empty() ? name : values.at(name); };
  auto scalar = [&](const std::string& name, DType dtype) {
    std::string cast = file_.fresh_name("scalar");
    node("Cast", {name}, {cast}, {{"to", int64_t{data_type_of(dtype)}}}, cast);
    return cast;
  };
  Names inputs = {loop.trip_count.empty() ? "" : scalar(read(loop.trip_count), DType::i64),
                  read(loop.condition)};
  for (const LoopSegment::Carried& carried : loop.carried) inputs.push_back(read(carried.initial));
  for (const std::string& name : loop.grown) inputs.push_back(read(name));

  onnx::GraphProto body;
  body.set_name(file_.fresh_name("loop"));
  GraphWriter writer(file_, body);
  Values inside = values;
  std::string counter = file_.fresh_name("counter"), goes_on = file_.fresh_name("goes_on");
  // Runtimes want to know of these two that they are scalars.
  fill_value_info(*body.add_input(), counter, Type::scalar(DType::i64));
  fill_value_info(*body.add_input(), goes_on, Type::scalar(DType::boolean));
  if (!loop.counter.empty()) inside[loop.counter] = counter;
  for (const LoopSegment::Carried& carried : loop.carried) {
    inside[carried.name] = file_.fresh_name(carried.name);
    body.add_input()->set_name(inside[carried.name]);
  }
  Names grown;
  for (const std::string& name : loop.grown) {
    grown.push_back(file_.fresh_name(name));
    body.add_input()->set_name(grown.back());
  }
  writer.segments(loop.body.segments, inside);
  auto add_output = [&](std::string_view op, const Names& from, const Attributes& attributes) {
    std::string name = file_.fresh_name("next");
    writer.node(op, from, {name}, attributes, name);
    body.add_output()->set_name(name);
  };
  std::string next = loop.next_condition.empty() ? goes_on : inside.at(loop.next_condition);
  add_output("Identity", {next}, {});
  for (size_t i = 0; i < loop.carried.size(); ++i)
    add_output("Identity", {inside.at(loop.body.results[i])}, {});
  for (size_t i = 0; i < grown.size(); ++i)
    add_output("Concat", {grown[i], inside.at(loop.body.results[loop.carried.size() + i])},
               {{"axis", int64_t{0}}});
  Names results;
  for (const std::string& name : loop.results) results.push_back(file_.claim(name));
  node("Loop", inputs, results, {{"body", &body}}, "loop");
  for (size_t i = 0; i < results.size(); ++i) values[loop.results[i]] = results[i];
}

}  // namespace hone::onnx_io
