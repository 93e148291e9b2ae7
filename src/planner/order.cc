#include "planner/order.h"

#include <algorithm>
#include <array>
#include <queue>
#include <span>
#include <tuple>

#include "plan/collectives.h"

namespace hone {

namespace {

bool exchanges(GraphView graph, NodeId n) {
  return exchanges_data(graph.op(n)) ||
         std::ranges::any_of(graph.regions(n),
                             [](const GraphRef& region) { return exchanges_data(*region); });
}

// As they come where the model has the choice. No order that the plan names contradicts this.
std::vector<uint32_t> exchanges_of(const PlannedGraph& graph) {
  std::vector<uint32_t> steps = order_steps(graph, NextStep::first);
  std::erase_if(steps,
                [&](uint32_t s) { return !exchanges(graph.view(), graph.steps[s].nodes.back()); });
  return steps;
}

}  // namespace

std::vector<uint32_t> order_steps(const PlannedGraph& graph, NextStep next) {
  const size_t count = graph.steps.size();
  std::vector<uint32_t> waits(count);
  std::vector<std::vector<uint32_t>> readers(count);
  const auto in_turn = [&](std::span<const uint32_t> steps) {
    for (size_t i = 1; i < steps.size(); ++i) {
      readers[steps[i - 1]].push_back(steps[i]);
      ++waits[steps[i]];
    }
  };
  for (uint32_t s = 0; s < count; ++s)
    for (uint32_t needed : graph.needs(s)) in_turn(std::array{needed, s});
  in_turn(graph.order);
  if (next == NextStep::newest) in_turn(exchanges_of(graph));

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

bool has_other_order(const Graph& graph, Plan plan) {
  plan.order.clear();
  const Result<PlannedGraph> frame = planned(plan, graph);
  if (!frame.ok()) return false;
  if (order_steps(*frame, NextStep::first) != order_steps(*frame, NextStep::newest)) return true;
  const auto regions = regions_of(*frame->graph);
  return std::ranges::any_of(regions, [&](const RegionRef& each) {
    const auto own = plan.region.find(each.key);
    return has_other_order(*each.graph, own == plan.region.end() ? Plan() : own->second);
  });
}

}  // namespace hone
