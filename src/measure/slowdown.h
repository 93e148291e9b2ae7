#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"

// Tells whether something takes longer than when it was recorded, at another time, so that both
// cannot run in turns. docs/measuring.md says what the rule assumes.

namespace hone {

// A session is a time of its own, in which the thing is placed, warmed and run for a while; one
// number says how long a run took. If nothing changed, all orders of the sessions, recorded and
// new, are equally likely, whatever the machine does within one.
struct SlowdownRule {
  double least = 0.95;  // of the recorded speed: less is an alarm
  double level = 0.01;  // the share of false alarms, at most
};

// How many new sessions have to be slower than all of k recorded ones. Chance makes r of them so
// with a probability of r! k! / (r + k)!; this is the least r for which that is at most `level`.
// None: more than kMostSessions, because too few were recorded.
std::optional<int64_t> sessions_for_alarm(int64_t recorded, double level);
inline constexpr int64_t kMostSessions = 12;

struct Slowdown {
  std::vector<double> now;  // seconds, of the sessions that it took to decide
  double speed = 1;         // of the recorded one: the medians' ratio
  bool is_alarm = false;
};

// An alarm if each of sessions_for_alarm() sessions takes longer than the longest recorded one over
// rule.least. The first session that does not ends the matter, so mostly there is one.
Result<Slowdown> slowdown(std::span<const double> recorded, const SlowdownRule& rule,
                          const std::function<Result<double>()>& session);

}  // namespace hone
