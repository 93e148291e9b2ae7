#include "planner/launches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "planner/frame.h"

namespace hone {

const Votes& AskedCost::votes(uint64_t kernel, const std::shared_ptr<const KernelFacts>& facts,
                              const Schedule& schedule) {
  Asked& asked = asked_[kernel];
  for (const auto& [its, votes] : asked.votes)
    if (its == schedule) return votes;
  if (asked.kernel == nullptr) asked.kernel = cost_.kernel(facts, threads_);
  return asked.votes.emplace_back(schedule, asked.kernel->votes(schedule)).second;
}

void Launches::add(uint64_t kernel, std::shared_ptr<const KernelFacts> facts,
                   const Schedule& schedule) {
  Launch& launch = launches_[kernel];
  if (launch.count == 0) launch = {std::move(facts), schedule};
  launch.count += 1;
}

Votes Launches::votes_beside(const Launches& others, AskedCost& cost) const {
  Votes votes;
  for (const auto& [kernel, each] : launches_) {
    const auto at = others.launches_.find(kernel);
    const bool both = at != others.launches_.end() && at->second.schedule == each.schedule;
    const double count = each.count - (both ? at->second.count : 0);
    if (count > 0) votes.add(cost.votes(kernel, each.facts, each.schedule), count);
  }
  return votes;
}

std::optional<double> Launches::sure_gain(const Launches& usual, AskedCost& cost,
                                          double lead) const {
  const std::optional<double> sureness = cost.sureness();
  if (!sureness) return std::nullopt;
  const Votes its = usual.votes_beside(*this, cost);
  if (its.seconds.empty()) return std::nullopt;  // nothing that could be saved
  const Votes mine = votes_beside(usual, cost);
  if (mine.seconds.empty()) return std::numeric_limits<double>::infinity();
  const Gain gain = gain_of(mine, its);
  if (gain.mean > std::max(-std::log1p(-lead), deviations_for(*sureness) * gain.deviation))
    return gain.mean;
  return std::nullopt;
}

void SureChoice::add(double seconds, Launches launches, double lead) {
  if (!ways_.empty() && seconds < (1 - lead) * ways_[usual_].seconds) usual_ = ways_.size();
  ways_.push_back({seconds, std::move(launches), lead});
}

size_t SureChoice::best(AskedCost* other) const {
  size_t best = usual_;
  if (other == nullptr) return best;
  double most = 0;
  for (size_t way = 0; way < ways_.size(); ++way) {
    if (way == usual_) continue;
    const std::optional<double> gain =
        ways_[way].launches.sure_gain(ways_[usual_].launches, *other, ways_[way].lead);
    if (gain && *gain > most) most = *gain, best = way;
  }
  return best;
}

Launches launches_of(PlanningFrame& frame) {
  const PlannedGraph& planned = frame.planned();
  std::unordered_map<uint64_t, uint64_t> kernel_of;  // by shape
  Launches all;
  for (const Step& step : planned.steps) {
    if (!step.is_kernel) continue;
    const auto [at, is_new] = kernel_of.try_emplace(step_shape(planned, step));
    const auto body = [&] { return body_of(planned, frame.users(), step); };
    if (is_new) at->second = kernel_hash(body());
    all.add(at->second, frame.choosers().usual.known().facts(at->second, body),
            frame.whole().schedule.at(at->second));
  }
  return all;
}

}  // namespace hone
