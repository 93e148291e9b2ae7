#include "measure/slowdown.h"

#include <algorithm>

#include "measure/timing.h"

namespace hone {
namespace {

double median_of(std::span<const double> seconds) {
  Timing timing;
  timing.add(seconds);
  return timing.median();
}

}  // namespace

std::optional<int64_t> sessions_for_alarm(int64_t recorded, double level) {
  double chance = 1;  // r! k! / (r + k)!
  for (int64_t r = 1; r <= kMostSessions; ++r) {
    chance *= static_cast<double>(r) / static_cast<double>(recorded + r);
    if (chance <= level) return r;
  }
  return std::nullopt;
}

Result<Slowdown> slowdown(std::span<const double> recorded, const SlowdownRule& rule,
                          const std::function<Result<double>()>& session) {
  const std::optional<int64_t> needed =
      sessions_for_alarm(static_cast<int64_t>(recorded.size()), rule.level);
  if (!needed)
    return bad_input("{} sessions are too few to tell chance from a change at a level of {}",
                     recorded.size(), rule.level);
  const double limit = std::ranges::max(recorded) / rule.least;
  Slowdown result;
  do {
    result.now.push_back(HONE_TRY(session()));
    result.is_alarm = result.now.back() > limit;
  } while (result.is_alarm && static_cast<int64_t>(result.now.size()) < *needed);
  result.speed = median_of(recorded) / median_of(result.now);
  return result;
}

}  // namespace hone
