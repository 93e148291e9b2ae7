#include "planner/memory.h"

#include <algorithm>

#include "planner/order.h"
#include "planner/steps.h"

namespace hone {

MemoryProblem memory_problem(const PlannedGraph& frame, const std::vector<Lifetime>& lives,
                             const std::map<std::string, int64_t>& offsets) {
  MemoryProblem problem;
  for (const Lifetime& life : lives) {
    MemoryBuffer& buffer = problem.buffers.emplace_back();
    buffer.begin = life.first;
    buffer.end = int64_t{life.last} + 1;
    buffer.size = life.bytes;
    buffer.alignment = kOffsetAlignment;
    if (const auto said = offsets.find(std::string(frame.graph->name(life.value)));
        said != offsets.end())
      buffer.offset = said->second;
  }
  return problem;
}

Result<std::optional<MemoryBounds>> memory_of(const Graph& graph, const Plan& plan) {
  if (!graph.is_static()) return std::optional<MemoryBounds>();
  const PlannedGraph frame = HONE_TRY(planned(plan, graph));
  const std::vector<Lifetime> lives = lifetimes(frame, frame.order);
  const MemoryProblem placed = memory_problem(frame, lives, plan.offset);
  std::vector<int64_t> offsets;
  for (const MemoryBuffer& buffer : placed.buffers) offsets.push_back(buffer.offset.value());
  // For buffers that stay where they are, the bound would be their own size.
  const MemoryProblem free = memory_problem(frame, lives, {});
  const MemoryPlan search = HONE_TRY(plan_memory(free, {.minimize = true, .nodes = kMemoryNodes}));
  return std::optional(MemoryBounds{
      HONE_TRY(heights_of(placed, offsets))[0], search.spaces[0].bound});
}

Status place_values(PlanningFrame& frame) {
  const PlannedGraph& planned = frame.planned();
  Plan& plan = frame.plan();
  const std::vector<uint32_t> order =
      order_steps(planned, frame.on().graph_order ? NextStep::first : NextStep::newest);
  HONE_CHECK(order.size() == planned.steps.size(), "steps that wait for each other");
  plan.order.clear();
  for (uint32_t step : order) plan.order.push_back(planned.steps[step].name);
  if (!frame.graph().is_static()) return {};
  const std::vector<Lifetime> lives = lifetimes(planned, order);
  const MemoryProblem problem = memory_problem(planned, lives, plan.offset);
  const MemoryPlan memory =
      HONE_TRY(plan_memory(problem, {.minimize = frame.on().memory, .nodes = kMemoryNodes}));
  if (memory.verdict == MemoryVerdict::infeasible)
    return bad_input(
               "%{} cannot lie where the plan says, together with the other offsets of the plan",
               frame.name(lives[memory.witness.front()].value))
        .within("offset");
  for (size_t i = 0; i < lives.size(); ++i)
    plan.offset[frame.name(lives[i].value)] = memory.offsets[i];
  return {};
}

}  // namespace hone
