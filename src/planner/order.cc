#include "planner/order.h"

#include <queue>

namespace hone {

std::vector<uint32_t> order_steps(const PlannedGraph& graph) {
  const size_t count = graph.steps.size();
  std::vector<uint32_t> waits(count);
  std::vector<std::vector<uint32_t>> readers(count);
  const auto wait = [&](uint32_t step, uint32_t needed) {
    readers[needed].push_back(step);
    ++waits[step];
  };
  for (uint32_t s = 0; s < count; ++s)
    for (uint32_t needed : graph.needs(s)) wait(s, needed);
  for (size_t i = 1; i < graph.order.size(); ++i) wait(graph.order[i], graph.order[i - 1]);

  using Ready = std::pair<NodeId, uint32_t>;  // the step's last node, the step
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto push = [&](uint32_t s) { ready.emplace(graph.steps[s].nodes.back(), s); };
  for (uint32_t s = 0; s < count; ++s)
    if (waits[s] == 0) push(s);
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t step = ready.top().second;
    ready.pop();
    order.push_back(step);
    for (uint32_t reader : readers[step])
      if (--waits[reader] == 0) push(reader);
  }
  return order;
}

}  // namespace hone
