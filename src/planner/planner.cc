#include "planner/planner.h"

#include <set>

#include "alloc/arena.h"
#include "plan/kernel_body.h"
#include "plan/planned.h"
#include "plan/view.h"
#include "planner/order.h"
#include "planner/schedules.h"

namespace hone {
namespace {

// Of a graph or a region. Schedules go to the whole plan.
class FramePlanner {
 public:
  FramePlanner(const Graph& graph, Plan& plan, Plan& whole, const Target& target)
      : graph_(graph), users_(graph), plan_(plan), whole_(whole), target_(target) {}

  Status run() {
    frame_ = HONE_TRY(planned(plan_, graph_));
    views();
    groups();
    frame_ = HONE_TRY(planned(plan_, graph_));
    layouts();
    schedules();
    order();
    offsets();
    for (const RegionRef& region : regions_of(graph_))
      HONE_TRY(FramePlanner(*region.graph, plan_.region[region.key], whole_, target_).run());
    return {};
  }

 private:
  std::string name(ValueId v) const { return std::string(graph_.name(v)); }

  void views() {
    for (const Step& step : frame_.steps) {
      if (!step.name.empty()) continue;
      const NodeId n = step.nodes[0];
      const ValueId v = graph_.result(n);
      if (plan_.view.contains(name(v)) || !check_view(graph_, users_, n).ok() ||
          plan_.layout.contains(name(graph_.operands(n)[0])) || plan_.layout.contains(name(v)) ||
          plan_.offset.contains(name(v)))
        continue;
      plan_.view[name(v)] = true;
    }
  }

  void groups() {
    std::set<std::string> taken;
    for (const Step& step : frame_.steps) taken.insert(step.name);
    size_t next = 0;
    for (const Step& step : frame_.steps) {
      if (!step.name.empty()) continue;
      const std::string node = name(graph_.result(step.nodes[0]));
      if (const auto view = plan_.view.find(node); view != plan_.view.end() && view->second)
        continue;
      std::string kernel;
      do kernel = fmt::format("k{}", next++);
      while (taken.contains(kernel));
      plan_.fuse.push_back({kernel, {node}});
    }
  }

  void layouts() {
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      if (frame_.has_layout(ValueId{i}))
        plan_.layout.try_emplace(name(ValueId{i}), frame_.layout[i]);
  }

  void schedules() {
    for (const Step& step : frame_.steps) {
      if (!step.is_kernel) continue;
      const KernelBody body = body_of(graph_, users_, step.nodes, frame_.layout);
      const auto [at, is_new] = whole_.schedule.try_emplace(kernel_hash(body));
      if (is_new) at->second = choose_schedule(body, target_, *whole_.threads);
    }
  }

  void order() {
    frame_.order = order_steps(frame_);
    plan_.order.clear();
    for (uint32_t step : frame_.order) plan_.order.push_back(frame_.steps[step].name);
  }

  void offsets() {
    if (!graph_.is_static()) return;
    const std::vector<Lifetime> lives = lifetimes(frame_, frame_.order);
    std::vector<ArenaItem> items;
    for (const Lifetime& life : lives) {
      ArenaItem item{life.first, life.last, life.bytes, kOffsetAlignment};
      if (const auto said = plan_.offset.find(name(life.value)); said != plan_.offset.end())
        item.offset = said->second;
      items.push_back(item);
    }
    const Arena arena = place(items);
    for (size_t i = 0; i < lives.size(); ++i) plan_.offset[name(lives[i].value)] = arena.offsets[i];
  }

  const Graph& graph_;
  const Users users_;
  Plan& plan_;
  Plan& whole_;
  const Target& target_;
  PlannedGraph frame_;
};

}  // namespace

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target) {
  HONE_TRY(check(partial, graph, target));
  Plan plan = partial;
  if (!graph.name().empty()) plan.graph = graph.name();
  plan.graph_hash = structural_hash(graph);
  plan.target = target.name;
  if (!plan.threads) plan.threads = target.cores;
  HONE_TRY(FramePlanner(graph, plan, plan, target).run());
  // What was said may fit what was decided here badly: places that overlap in the order, schedules
  // of kernels that were not formed.
  Plan nothing;
  nothing.graph = partial.graph;
  if (partial != nothing) HONE_TRY(check_complete(plan, graph, target));
  return plan;
}

}  // namespace hone
