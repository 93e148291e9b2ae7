#include "measure/timing.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "base/text.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLeastRuns = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

// ---- Samples ------------------------------------------------------------------------------------

void Timing::add(std::span<const double> more) {
  seconds.insert(seconds.end(), more.begin(), more.end());
  std::ranges::sort(seconds);
}

double Timing::median() const {
  const size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

double Timing::quantile(double fraction) const {
  const auto at = static_cast<size_t>(static_cast<double>(seconds.size()) * fraction);
  return seconds[std::min(at, seconds.size() - 1)];
}

// The number of samples below the median varies like that of heads in as many throws of a coin. The
// interval from the k-th lowest to the k-th highest sample misses the median if fewer than k do, or
// k too many.
std::optional<Interval> median_interval(std::span<const double> sorted) {
  constexpr double kMiss = 0.025;  // on each side
  const auto n = static_cast<double>(sorted.size());
  size_t k = 0;
  double below = 0;
  while (k < sorted.size()) {
    const auto heads = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(heads + 1) - std::lgamma(n - heads + 1) -
                      n * std::log(2.0));
    if (below > kMiss) break;
    ++k;
  }
  if (k == 0) return std::nullopt;
  return Interval{sorted[k - 1], sorted[sorted.size() - k]};
}

std::string noise_of(const Timing& timing) {
  constexpr double kWideSpread = 1.25, kWideInterval = 0.05;
  const double median = timing.median();
  if (median <= 0) return "runs are shorter than the clock can tell";
  const double spread = timing.quantile(0.9) / median;
  if (spread > kWideSpread) return fmt::format("p90 is {:.2g} x the median", spread);
  const std::optional<Interval> interval = median_interval(timing.seconds);
  if (!interval) return fmt::format("{} runs say little", timing.seconds.size());
  const double width = std::max(interval->high - median, median - interval->low) / median;
  if (width > kWideInterval) return fmt::format("the median is sure to {:.0f} % only", 100 * width);
  return "";
}

// ---- Measuring ----------------------------------------------------------------------------------

int64_t times_in(double seconds, double one, int64_t least, int64_t most) {
  const double times = seconds / std::max(one, 1e-9);  // one of 0 would be no number
  if (times >= static_cast<double>(most)) return most;
  return std::max(static_cast<int64_t>(times), least);
}

Result<double> measure_once(const std::function<Status()>& run) {
  const Clock::time_point start = Clock::now();
  HONE_TRY(run());
  return seconds_since(start);
}

Result<Timing> measure(const MeasureOptions& options, const CancelToken& cancel,
                       const std::function<Status()>& run) {
  for (int64_t i = 0; i < options.warmup; ++i) {
    HONE_TRY(cancel.check());
    HONE_TRY(run());
  }
  const Clock::time_point start = Clock::now();
  Timing timing;
  const auto goes_on = [&] {
    const size_t done = timing.seconds.size();
    if (options.runs > 0) return done < static_cast<size_t>(options.runs);
    return done < kLeastRuns || seconds_since(start) < options.seconds;
  };
  while (goes_on()) {
    HONE_TRY(cancel.check());
    timing.seconds.push_back(HONE_TRY(measure_once(run)));
  }
  std::ranges::sort(timing.seconds);
  return timing;
}

// ---- Memory ------------------------------------------------------------------------------------

// proc(5): 5 resets the peak resident set size.
void PeakMemory::start() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t PeakMemory::bytes() {
  constexpr int64_t kKiB = 1024;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::string_view rest = line;
    if (!consume_prefix(rest, "VmHWM:")) continue;
    const std::vector<std::string_view> words = split_words(rest);
    if (words.empty()) break;
    if (const Result<int64_t> number = parse_int(words[0]); number.ok()) return *number * kKiB;
  }
  struct rusage usage = {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * kKiB : 0;
}

}  // namespace hone
