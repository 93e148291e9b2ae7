#include "tune/tune_kernel.h"

#include <algorithm>
#include <limits>
#include <map>

#include "search/schedule_search.h"
#include "tune/timed_schedules.h"

namespace hone {
namespace {

constexpr size_t kFinalists = 3;
constexpr int64_t kFinalRounds = 18;
constexpr double kSurely = 0.985;  // a gain of less may be noise

// The fastest of a start and some others, which are raced at once.
Result<Schedule> fastest_of(const Schedule& start, std::span<const Schedule> others,
                            KernelTimer& timer) {
  if (others.empty()) return start;
  std::vector<Schedule> all = {start};
  all.insert(all.end(), others.begin(), others.end());
  const std::vector<double> seconds = HONE_TRY(timer.seconds(all));
  const auto least = static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
  return all[seconds[least] <= kSurely * seconds[0] ? least : 0];
}

}  // namespace

Result<TunedKernel> tune_kernel(const std::shared_ptr<const KernelFacts>& facts,
                                const Schedule& start, const Target& target, const Cost& cost,
                                MeasuredKernels& known, const TuneKernelOptions& options) {
  const Search& search =
      options.own_search != nullptr ? *options.own_search : *HONE_TRY(find_search(options.by));
  MeterOptions meter = options.meter;
  meter.most_drift = std::numeric_limits<double>::infinity();  // the last race decides
  KernelTimer timer(facts, start, target, known, meter);
  const Schedule beginning = HONE_TRY(fastest_of(start, options.first, timer));
  ScheduleSearch space(facts, target, beginning);
  Promising promising(facts, target, cost, meter.conditions.threads, options.measured_share);
  TimedSchedules times(space, timer, promising, options.stepped);
  const SearchResult found = HONE_TRY(search.run(space, times, options.search));

  std::vector<Schedule> finalists;
  if (beginning != start) finalists.push_back(beginning);
  for (Point point : times.fastest()) {
    if (finalists.size() == kFinalists) break;
    const Schedule& schedule = space.schedule(point);
    if (schedule != start && schedule != beginning) finalists.push_back(schedule);
  }
  finalists.push_back(start);
  const std::vector<double> seconds = HONE_TRY(timer.again(finalists, kFinalRounds));
  std::multimap<double, Schedule> faster;
  for (size_t i = 0; i < finalists.size(); ++i)
    if (seconds[i] < seconds.back()) faster.emplace(seconds[i], finalists[i]);

  TunedKernel tuned{.schedule = start,
                    .seconds = seconds.back(),
                    .before = seconds.back(),
                    .trials = found.trials,
                    .measured = times.measured(),
                    .needed = times.needed(),
                    .compiles = timer.compiles()};
  for (const auto& [time, schedule] : faster) tuned.faster.push_back(schedule);
  if (!faster.empty() && faster.begin()->first <= kSurely * tuned.before) {
    tuned.seconds = faster.begin()->first;
    tuned.schedule = tuned.faster.front();
  }
  return tuned;
}

}  // namespace hone
