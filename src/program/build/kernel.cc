#include "program/build/kernel.h"

#include <algorithm>

#include "ir/op_def.h"
#include "program/build/algorithms.h"
#include "program/build/ordered.h"

namespace hone {

namespace {

// The generic algorithm as a nest: one point after another, the innermost loop within a thread.
Schedule generic_nest(const KernelBody& body) {
  const int rank = space_of(body).parallel;
  Schedule schedule = plain_nest(rank);
  schedule.own = GenericFields();
  const bool is_divisible = std::ranges::all_of(body.graph.outputs(), [&](ValueId output) {
    return bits(body.graph.type(output).dtype()) >= 8;
  });
  if (is_divisible) schedule.threads = std::min(rank, std::max(rank - 1, 1));
  return schedule;
}

}  // namespace

Result<TileProgram> build_generic(const KernelBody& body, const Schedule&, std::string_view name) {
  const Graph& graph = body.graph;
  if (graph.outputs().empty()) return bad_input("a kernel without outputs");
  if (class_of(graph.opcode(graph.producer(graph.outputs()[0]))) == OpClass::ordered)
    return build_ordered(body, name);
  return build_nest(body, generic_nest(body), name);
}

Result<TileProgram> build_kernel(const KernelBody& body, const Schedule& schedule,
                                 std::string_view name) {
  switch (schedule.algorithm()) {
#define HONE_ALGORITHM(member, ...) \
  case Algorithm::member: return build_##member(body, schedule, name);
#include "kernel/algorithms.def"
  }
  return bad_input("a schedule of no algorithm");
}

Result<TileProgram> build_generic(const Application& application, std::string_view name) {
  if (!has_access(application) || is_composite(application.op.opcode()))
    return unsupported("{} cannot be a kernel", application.op.name());
  Graph graph;
  std::vector<ValueId> operands;
  for (Type type : application.operands)
    operands.push_back(type ? graph.add_parameter(type) : ValueId::none());
  const NodeId node = HONE_TRY(graph.append(application.op, operands));
  return build_kernel(body_of(graph, std::span(&node, 1), {}), {}, name);
}

}  // namespace hone
