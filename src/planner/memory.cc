#include "planner/memory.h"

#include <algorithm>

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
  const MemoryProblem problem = memory_problem(frame, lifetimes(frame, frame.order), plan.offset);
  return std::optional(HONE_TRY(plan_memory(problem)).spaces[0]);
}

}  // namespace hone
