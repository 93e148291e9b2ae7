#include "learn/models/model_trust.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernel/kernel_kind.h"
#include "learn/kernel_data.h"

namespace hone {
namespace {

constexpr int64_t kLeastBounded = 20;  // kernels of a kind, for a bound of its own
constexpr double kHolds = 0.9;         // of bounds
constexpr double kLossesCount = 2;     // of choices, for one gain
constexpr size_t kLeastJudged = 9;     // kernels that a bound of nine in ten stands on
constexpr double kPulled = 2;          // kernels of the mean that a kind's level is held to

// For each kind, the median of how far prices of the planner's schedules are too low. It is drawn
// to the mean of all kernels, as if two more kernels of the kind had that mean.
void find_levels(std::span<const JudgedKernel> judged, ModelTrust& trust) {
  double all = 0;
  std::map<std::string_view, std::vector<double>> by_kind;
  for (const JudgedKernel& each : judged) {
    all += each.short_by / static_cast<double>(judged.size());
    by_kind[each.kind].push_back(each.short_by);
  }
  for (auto& [kind, short_by] : by_kind) {
    std::ranges::nth_element(short_by, short_by.begin() + std::ssize(short_by) / 2);
    const auto count = static_cast<double>(short_by.size());
    const double middle = short_by[short_by.size() / 2];
    trust.levels[std::string(kind)] = (count * middle + kPulled * all) / (count + kPulled);
  }
}

// As far as the networks gain most over the analytic price.
double reach_of(std::span<const JudgedKernel> judged) {
  double gained = 0, most = 0, reach = 0;
  for (const JudgedKernel& each : judged) {
    gained += each.analytic - each.learned;
    if (gained >= most) most = gained, reach = each.distance;
  }
  return reach;
}

// The quantile of split conformal prediction, of a kind or of all.
RegretBound bound_of(std::span<const JudgedKernel> judged, std::string_view kind) {
  RegretBound bound{.kind = std::string(kind), .slower = {}};
  for (size_t c = 0; c < std::size(kMeasuredCounts); ++c) {
    std::vector<double> slower;
    for (const JudgedKernel& each : judged)
      if (kind.empty() || each.kind == kind) slower.push_back(each.slower[c]);
    std::ranges::sort(slower);
    const auto at = static_cast<size_t>(std::ceil(kHolds * static_cast<double>(slower.size() + 1)));
    bound.slower.push_back(slower[at - 1]);
  }
  return bound;
}

// The lead with which choices gain most over the planner's. Losses count more: whoever plans
// without measuring does not see them.
double lead_of(std::span<const JudgedKernel> judged) {
  double most = 0, best = kNoLead;
  for (double lead : {0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2}) {
    double gained = 0;
    for (const JudgedKernel& each : judged)
      if (each.lead > lead) gained += each.gain < 0 ? kLossesCount * each.gain : each.gain;
    if (gained > most) most = gained, best = lead;
  }
  return best;
}

}  // namespace

ModelTrust trust_by(std::vector<JudgedKernel> judged) {
  ModelTrust trust;
  find_levels(judged, trust);
  // Kernels with too few schedules have only an absolute time.
  std::erase_if(judged, [](const JudgedKernel& each) { return each.schedules < kLeastSchedules; });
  std::ranges::sort(judged, {}, &JudgedKernel::distance);
  trust.reach = reach_of(judged);
  std::erase_if(judged, [&](const JudgedKernel& each) { return each.distance > trust.reach; });
  if (judged.size() >= kLeastJudged) trust.bounds.push_back(bound_of(judged, ""));
  for (std::string_view kind : kKernelKinds)
    if (std::ranges::count(judged, kind, &JudgedKernel::kind) >= kLeastBounded)
      trust.bounds.push_back(bound_of(judged, kind));
  trust.lead = lead_of(judged);
  return trust;
}

}  // namespace hone
