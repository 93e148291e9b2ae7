#include "planner/order.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "plan/collectives.h"

namespace hone {

namespace {

bool exchanges(GraphView graph, NodeId n) {
  return exchanges_data(graph.op(n)) ||
         std::ranges::any_of(graph.regions(n),
                             [](const GraphRef& region) { return exchanges_data(*region); });
}

// In the model's order.
std::vector<uint32_t> exchanges_of(const PlannedGraph& graph) {
  std::vector<uint32_t> steps;
  for (uint32_t s = 0; s < graph.steps.size(); ++s)
    if (exchanges(graph.view(), graph.steps[s].nodes.back())) steps.push_back(s);
  std::ranges::sort(steps, {}, [&](uint32_t s) { return graph.steps[s].nodes.back(); });
  return steps;
}

}  // namespace

std::vector<uint32_t> order_steps(const PlannedGraph& graph, NextStep next) {
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
  if (next == NextStep::newest) {
    const std::vector<uint32_t> exchanges = exchanges_of(graph);
    for (size_t i = 1; i < exchanges.size(); ++i) wait(exchanges[i], exchanges[i - 1]);
  }

  std::vector<uint32_t> order;
  using Ready = std::tuple<size_t, NodeId, uint32_t>;  // its rank, the step's last node, the step
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto push = [&](uint32_t s) {
    const size_t rank = next == NextStep::newest ? count - order.size() : 0;
    ready.emplace(rank, graph.steps[s].nodes.back(), s);
  };
  for (uint32_t s = 0; s < count; ++s)
    if (waits[s] == 0) push(s);
  while (!ready.empty()) {
    const uint32_t step = std::get<2>(ready.top());
    ready.pop();
    order.push_back(step);
    for (uint32_t reader : readers[step])
      if (--waits[reader] == 0) push(reader);
  }
  return order;
}

}  // namespace hone
