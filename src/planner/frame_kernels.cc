#include "planner/frame_kernels.h"

#include <cmath>
#include <unordered_map>

namespace hone {

FrameKernels::FrameKernels(PlanningFrame& frame) {
  const PlannedGraph& planned = frame.planned();
  std::unordered_map<uint64_t, uint64_t> kernel_of;  // by shape
  for (const Step& step : planned.steps) {
    if (!step.is_kernel) continue;
    const auto [at, is_new] = kernel_of.try_emplace(step_shape(planned, step));
    if (is_new) {
      const KernelBody body = body_of(planned, frame.users(), step);
      at->second = kernel_hash(body);
      Launches& launches = launches_[at->second];
      launches.facts = frame.choosers().usual.known().facts(at->second, [&body] { return body; });
      launches.schedule = frame.whole().schedule.at(at->second);
    }
    launches_[at->second].count += 1;
  }
}

bool FrameKernels::are_surely_cheaper(const FrameKernels& usual, const Cost& cost,
                                      int64_t threads) const {
  const std::optional<double> sureness = cost.sureness();
  if (!sureness) return false;
  Votes mine, its;
  const auto add = [&](Votes& votes, const Launches& launches, double count) {
    if (count > 0) votes.add(cost.kernel(launches.facts, threads)->votes(launches.schedule), count);
  };
  const auto count_in = [](const FrameKernels& all, uint64_t kernel, const Schedule& schedule) {
    const auto at = all.launches_.find(kernel);
    return at != all.launches_.end() && at->second.schedule == schedule ? at->second.count : 0;
  };
  for (const auto& [kernel, each] : launches_)
    add(mine, each, each.count - count_in(usual, kernel, each.schedule));
  for (const auto& [kernel, each] : usual.launches_)
    add(its, each, each.count - count_in(*this, kernel, each.schedule));
  if (its.seconds.empty()) return false;  // nothing that could be saved
  if (mine.seconds.empty()) return true;
  const Gain gain = gain_of(mine, its);
  return gain.mean > deviations_for(*sureness) * gain.deviation;
}

}  // namespace hone
