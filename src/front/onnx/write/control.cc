#include "front/onnx/write/registry.h"

namespace hone::onnx_io {

bool export_if(Emit& e) {
  Names arguments = e.all();
  arguments.erase(arguments.begin());
  onnx::GraphProto yes = e.subgraph(*e.regions()[0], 0, arguments);
  onnx::GraphProto no = e.subgraph(*e.regions()[1], 0, arguments);
  return e.results("If", {e.in(0)}, {{"then_branch", &yes}, {"else_branch", &no}});
}

// The condition is computed before the loop and at the end of each iteration.
bool export_while(Emit& e) {
  const Graph& condition = *e.regions()[0];
  const Graph& body = *e.regions()[1];
  // Inputs of ONNX's body: the counter, the condition, the state.
  Graph step("body");
  step.add_parameter(Type::scalar(DType::i64));
  step.add_parameter(Type::scalar(DType::boolean));
  std::vector<ValueId> state;
  for (Type type : body.input_types()) state.push_back(step.add_parameter(type));
  auto call = [&](const Graph& callee, std::span<const ValueId> arguments) {
    GraphRef region = std::make_shared<const Graph>(callee);
    Result<NodeId> node = step.append(Op::get(Opcode::call), arguments, {region});
    if (!node.ok()) e.unsupported("{}", node.error().what());
    std::vector<ValueId> results;
    for (ValueId v : step.results(*node)) results.push_back(v);
    return results;
  };
  std::vector<ValueId> next = call(body, state);
  std::vector<ValueId> outputs = call(condition, next);
  outputs.insert(outputs.end(), next.begin(), next.end());
  step.set_outputs(outputs);
  onnx::GraphProto proto = e.subgraph(step, step.inputs().size(), {});
  Names inputs = {"", e.inlined(condition, e.all())[0]};
  Names initial = e.all();
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  return e.results("Loop", inputs, {{"body", &proto}});
}

bool export_scan(Emit& e) {
  const Graph& body = *e.regions()[0];
  int64_t carried = e.op().integer("carried");
  int64_t scanned = static_cast<int64_t>(e.operands()) - carried;
  int64_t stacked = static_cast<int64_t>(body.outputs().size()) - carried;
  bool is_reverse = e.op().flag("reverse");
  if (scanned == 0) {
    if (is_reverse && stacked > 0) e.unsupported("a reverse scan over nothing");
    Graph step("body");
    step.add_parameter(Type::scalar(DType::i64));
    ValueId goes_on = step.add_parameter(Type::scalar(DType::boolean));
    std::vector<ValueId> state;
    for (Type type : body.input_types()) state.push_back(step.add_parameter(type));
    GraphRef region = e.regions()[0];
    Result<NodeId> node = step.append(Op::get(Opcode::call), state, {region});
    if (!node.ok()) e.unsupported("{}", node.error().what());
    std::vector<ValueId> outputs = {goes_on};
    for (ValueId v : step.results(*node)) outputs.push_back(v);
    step.set_outputs(outputs);
    onnx::GraphProto proto = e.subgraph(step, step.inputs().size(), {});
    Names inputs = {e.squeeze(e.dims(e.op().dims("length")), {0}), ""};
    Names initial = e.all();
    inputs.insert(inputs.end(), initial.begin(), initial.end());
    return e.results("Loop", inputs, {{"body", &proto}});
  }
  onnx::GraphProto proto = e.subgraph(body, body.inputs().size(), {});
  Attributes attributes = {{"num_scan_inputs", scanned}, {"body", &proto}};
  if (is_reverse) {
    attributes.push_back({"scan_input_directions", Ints(static_cast<size_t>(scanned), 1)});
    attributes.push_back({"scan_output_directions", Ints(static_cast<size_t>(stacked), 1)});
  }
  return e.results("Scan", e.all(), attributes);
}

bool export_call(Emit& e) {
  Names results = e.inlined(*e.regions()[0], e.all());
  for (size_t i = 0; i < results.size(); ++i) e.result_is(results[i], i);
  return true;
}

}  // namespace hone::onnx_io
