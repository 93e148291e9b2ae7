#include "shard/data_flow.h"

#include <algorithm>

#include "ir/op_facts.h"
#include "shard/value_layout.h"

namespace hone {
namespace {

constexpr FlowPlace outer_operand(size_t i) { return {.index = i}; }
constexpr FlowPlace outer_result(size_t i) { return {.is_result = true, .index = i}; }
constexpr FlowPlace parameter_of(int region, size_t i) { return {.region = region, .index = i}; }
constexpr FlowPlace result_of(int region, size_t i) {
  return {.region = region, .is_result = true, .index = i};
}
constexpr FlowPlace stacked(FlowPlace place) {
  place.is_stacked = true;
  return place;
}

std::vector<FlowEdge> flow_of_loop(size_t carried, size_t operands, size_t results, int body) {
  std::vector<FlowEdge> edges;
  for (size_t i = 0; i < carried; ++i) {
    edges.push_back({outer_operand(i), parameter_of(body, i), result_of(body, i), outer_result(i)});
    if (body == 1) edges.back().push_back(parameter_of(0, i));  // the condition
  }
  for (size_t i = carried; i < operands; ++i)
    edges.push_back({stacked(outer_operand(i)), parameter_of(body, i)});
  for (size_t i = carried; i < results; ++i)
    edges.push_back({result_of(body, i), stacked(outer_result(i))});
  return edges;
}

}  // namespace

std::vector<FlowEdge> data_flow(Op op, size_t operands, size_t results) {
  if (is_while(op.opcode())) return flow_of_loop(operands, operands, results, 1);
  if (is_scan(op.opcode()))
    return flow_of_loop(static_cast<size_t>(op.integer("carried")), operands, results, 0);
  if (class_of(op.opcode()) != OpClass::control) return {};
  const int regions = is_branch(op.opcode()) ? 2 : 1;
  const size_t first = is_branch(op.opcode()) ? 1 : 0;  // the predicate
  std::vector<FlowEdge> edges;
  for (size_t i = first; i < operands; ++i) {
    edges.push_back({outer_operand(i)});
    for (int r = 0; r < regions; ++r) edges.back().push_back(parameter_of(r, i - first));
  }
  for (size_t i = 0; i < results; ++i) {
    edges.emplace_back();
    for (int r = 0; r < regions; ++r) edges.back().push_back(result_of(r, i));
    edges.back().push_back(outer_result(i));
  }
  return edges;
}

bool talks_to_devices(const Graph& graph, NodeId n) {
  if (class_of(graph.opcode(n)) == OpClass::collective) return true;
  for (const GraphRef& region : graph.regions(n))
    for (const NodeId inner : region->nodes())
      if (talks_to_devices(*region, inner)) return true;
  return false;
}

FlowLayouts flow_layouts(const Graph& graph, NodeId n,
                         const std::function<ShardLayout(const FlowEdge&)>& layout_of) {
  FlowLayouts made;
  for (const ValueId v : graph.operands(n))
    made.operands.push_back(v.is_none() ? ShardLayout() : undivided(graph.type(v)));
  for (const ValueId v : graph.results(n)) made.results.push_back(undivided(graph.type(v)));
  for (const GraphRef& region : graph.regions(n)) {
    for (auto* list : {&made.inputs, &made.outputs}) list->emplace_back();
    for (const Type type : region->input_types()) made.inputs.back().push_back(undivided(type));
    for (const Type type : region->output_types()) made.outputs.back().push_back(undivided(type));
  }
  for (const FlowEdge& edge :
       data_flow(graph.op(n), graph.operands(n).size(), graph.results(n).size())) {
    const ShardLayout layout = layout_of(edge);
    for (const FlowPlace& place : edge) {
      const auto r = static_cast<size_t>(std::max(place.region, 0));
      ShardLayout& own = place.region < 0
                             ? (place.is_result ? made.results : made.operands)[place.index]
                             : (place.is_result ? made.outputs : made.inputs)[r][place.index];
      own = layout;
      if (place.is_stacked) own.dims.insert(own.dims.begin(), MeshParts());
    }
  }
  return made;
}

}  // namespace hone
