#include "session/timing.h"

#include "base/text.h"

#include <algorithm>
#include <chrono>

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLeastRuns = 3;

}  // namespace

double Timing::median() const {
  const size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

double Timing::part(double fraction) const {
  const auto at = static_cast<size_t>(static_cast<double>(seconds.size()) * fraction);
  return seconds[std::min(at, seconds.size() - 1)];
}

std::string Timing::to_string() const {
  return fmt::format("median {}, 10% {}, 90% {}, of {} runs", format_seconds(median()),
                     format_seconds(part(0.1)), format_seconds(part(0.9)), seconds.size());
}

Result<double> measure_once(const std::function<Status()>& run) {
  const Clock::time_point start = Clock::now();
  HONE_TRY(run());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<Timing> measure(double seconds, const CancelToken& cancel,
                       const std::function<Status()>& run) {
  Timing timing;
  const std::chrono::duration<double> budget(seconds);
  const Clock::time_point start = Clock::now();
  while (timing.seconds.size() < kLeastRuns || Clock::now() - start < budget) {
    HONE_TRY(cancel.check());
    timing.seconds.push_back(HONE_TRY(measure_once(run)));
  }
  std::ranges::sort(timing.seconds);
  return timing;
}

}  // namespace hone
