#include "plan/planned.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/op_facts.h"
#include "plan/derive.h"
#include "plan/view.h"

namespace hone {

bool is_command(GraphView graph, NodeId node) {
  const OpClass op_class = class_of(graph.opcode(node));
  return op_class == OpClass::control || op_class == OpClass::collective;
}

std::string step_name(GraphView graph, NodeId n) {
  return graph.results(n).size() > 0 ? std::string(graph.name(graph.result(n)))
                                     : fmt::format("node{}", n.index);
}

std::vector<uint32_t> PlannedGraph::writers_of(std::span<const ValueId> values) const {
  std::vector<uint32_t> steps;
  const GraphView graph = view();
  std::vector<ValueId> written;  // what has to be, and parts of it
  for (ValueId v : values) written.push_back(version[v.index]);
  for (size_t i = 0; i < written.size(); ++i) {
    const NodeId producer = graph.producer(written[i]);
    const uint32_t writer = step_of[producer.index];
    if (writer != kNoStep)
      steps.push_back(writer);
    else if (joins_operands(graph.opcode(producer)))
      written.insert(written.end(), graph.operands(producer).begin(),
                     graph.operands(producer).end());
  }
  return steps;
}

std::vector<uint32_t> PlannedGraph::needs(uint32_t step) const {
  std::vector<uint32_t> needed = writers_of(steps[step].reads);
  needed.insert(needed.end(), steps[step].after.begin(), steps[step].after.end());
  std::ranges::sort(needed);
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  return needed;
}

KernelBody body_of(const PlannedGraph& graph, UsersView users, const Step& step) {
  KernelBody body = body_of(graph.view(), users, step.nodes, graph.layout);
  body.in_place = step.in_place;
  for (const Donor& donor : step.donors) {
    const auto input = std::ranges::find(step.reads, donor.input);
    if (input == step.reads.end()) continue;
    const auto output = std::ranges::find(step.writes, donor.output);
    body.graph.add_donation(static_cast<uint32_t>(input - step.reads.begin()),
                            static_cast<uint32_t>(output - step.writes.begin()));
  }
  return body;
}

uint64_t kernel_hash(const PlannedGraph& graph, const Step& step, uint64_t graph_hash) {
  KernelHasher hasher(graph_hash);
  for (const std::vector<ValueId>* ports : {&step.reads, &step.writes})
    for (ValueId v : *ports) hasher.add(graph.layout[v.index]);
  return hasher.finish(step.in_place, {});
}

uint64_t step_shape(const PlannedGraph& graph, const Step& step) {
  Hasher hasher(group_shape(*graph.graph, step.nodes, {step.reads, step.writes}, graph.layout));
  hasher.add(step.in_place);
  for (const Donor& donor : step.donors)
    hasher.add(std::ranges::find(step.reads, donor.input) - step.reads.begin())
        .add(std::ranges::find(step.writes, donor.output) - step.writes.begin());
  return hasher.value();
}

std::vector<RegionRef> regions_of(const Graph& graph) {
  std::vector<RegionRef> result;
  for (NodeId n : graph.nodes()) {
    if (graph.regions(n).empty()) continue;
    const std::vector<std::string_view> names = region_names(graph.op(n).def());
    for (size_t i = 0; i < names.size(); ++i)
      result.push_back(
          {fmt::format("{}.{}", step_name(graph, n), names[i]), n, i, graph.regions(n)[i].get()});
  }
  return result;
}

std::string label(GraphView graph, const Step& step) {
  if (step.name.empty()) return graph.label(graph.result(step.nodes[0]));
  return (step.is_kernel ? "@" : "%") + step.name;
}

bool lies_elsewhere(const PlannedGraph& planned, ValueId v) {
  const NodeId n = planned.view().producer(v);
  return planned.is_view(n) && !joins_operands(planned.view().opcode(n));
}

Status check_side_by_side(const PlannedGraph& planned, NodeId view) {
  const GraphView graph = planned.view();
  if (!keeps_layout(graph, view)) return {};
  const bool joins = joins_operands(graph.opcode(view));
  const ValueId base = planned.base[(joins ? graph.result(view) : graph.operands(view)[0]).index];
  const Layout& layout = planned.layout[base.index];
  const bool fits = planned.has_layout(base) && check(layout, graph.type(base)).ok();
  return check_side_by_side(
      graph, view, fits ? layout : Layout::row_major(graph.type(graph.result(view)).rank()));
}

namespace {

// Why all is row-major that lies in the same memory; "": nothing of this value's is the cause.
std::string why_row_major(const PlannedGraph& planned, UsersView users, ValueId v) {
  const GraphView graph = planned.view();
  if (users.is_output(v)) return "an output of the graph is row-major";
  const uint32_t writer = planned.step_of[graph.producer(v).index];
  if (writer != kNoStep && !planned.steps[writer].is_kernel)
    return fmt::format("{} writes it row-major", label(graph, planned.steps[writer]));
  if (writer != kNoStep && planned.steps[writer].in_place)
    return "it is changed in place, where it is row-major";
  for (NodeId reader : users.of(v)) {
    const uint32_t step = planned.step_of[reader.index];
    if (step == kNoStep) {
      if (keeps_layout(graph, reader)) continue;
      return fmt::format("{} is a view of it, for which it must be row-major",
                         graph.label(graph.result(reader)));
    }
    if (!planned.steps[step].is_kernel)
      return fmt::format("{} reads it row-major", label(graph, planned.steps[step]));
    if (planned.steps[step].in_place && graph.operands(reader)[0] == v)
      return fmt::format("{} changes it in place, for which it must be row-major",
                         label(graph, planned.steps[step]));
  }
  return "";
}

}  // namespace

std::string why_no_layout(const PlannedGraph& planned, UsersView users, ValueId v) {
  const GraphView graph = planned.view();
  switch (planned.home[v.index]) {
    case Home::none: return "it has no memory: only its own kernel reads it";
    case Home::input: return "an input of the graph is row-major";
    case Home::output: return "an output of the graph is row-major";
    case Home::view: {
      const ValueId base = planned.base[v.index];
      if (!planned.has_layout(base)) return "it lies in other memory, which is row-major";
      return fmt::format("it lies in other memory, that of {}, and has its layout",
                         graph.label(base));
    }
    case Home::constant:
    case Home::temporary: break;
  }
  if (graph.type(v).rank() == 0) return "a scalar has no dims";
  for (ValueId part : Derivation(planned, users).inside(v)) {
    const std::string why = why_row_major(planned, users, part);
    if (why.empty()) continue;
    return part == v ? why : fmt::format("{} lies in it, and {}", graph.label(part), why);
  }
  return "it is row-major";
}

}  // namespace hone
