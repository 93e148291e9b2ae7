#include "plan/planned_kernels.h"

#include <ranges>
#include <set>

#include "plan/planned.h"

namespace hone {
namespace {

void add_names(const PlannedGraph& frame, const Step& step, PlannedKernel& kernel) {
  const GraphView graph = frame.view();
  const auto is_contraction = [&](NodeId n) {
    return class_of(graph.op(n).opcode()) == OpClass::contraction;
  };
  for (const bool contracts : {true, false})
    for (NodeId n : std::views::reverse(step.nodes))
      if (is_contraction(n) == contracts) kernel.computes.emplace_back(graph.name(graph.result(n)));
  for (ValueId v : step.reads)
    if (frame.home[v.index] == Home::constant) kernel.weights.emplace_back(graph.name(v));
}

class KernelPlanner {
 public:
  explicit KernelPlanner(const Plan& whole) : whole_(whole) {}

  Status add(const Graph& graph, const Plan& plan) {
    const PlannedGraph frame = HONE_TRY(planned(plan, graph));
    const Users users(*frame.graph);
    for (const Step& step : frame.steps) {
      if (!names_.insert(step.name).second) {
        by_name_.erase(step.name);
        continue;
      }
      if (!step.is_kernel || step.writes.empty()) continue;
      KernelBody body = body_of(frame, users, step);
      const uint64_t hash = kernel_hash(body);
      const auto schedule = whole_.schedule.find(hash);
      if (schedule == whole_.schedule.end()) continue;
      PlannedKernel kernel = {std::move(body), hash, &schedule->second};
      add_names(frame, step, kernel);
      by_name_.emplace(step.name, std::move(kernel));
    }
    for (const RegionRef& region : regions_of(graph))
      HONE_TRY(add(*region.graph, plan.region.at(region.key)));
    return {};
  }

  std::map<std::string, PlannedKernel> take() && { return std::move(by_name_); }

 private:
  const Plan& whole_;
  std::set<std::string> names_;
  std::map<std::string, PlannedKernel> by_name_;
};

}  // namespace

Result<std::map<std::string, PlannedKernel>> planned_kernels(const Graph& graph, const Plan& plan) {
  KernelPlanner kernels(plan);
  HONE_TRY(kernels.add(graph, plan));
  return std::move(kernels).take();
}

}  // namespace hone
