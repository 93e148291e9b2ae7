#pragma once

#include <limits>
#include <optional>

#include "learn/fit_prices.h"
#include "search/schedule_search.h"
#include "tune/tune_kernel.h"

// What schedules of a kernel take, for data sets: every one that is asked for is measured, or known
// from the log.

namespace hone {

class KernelTimer {
 public:
  // The schedule is what the others are raced with. Target and what is known outlive it.
  KernelTimer(std::shared_ptr<const KernelFacts> facts, const Schedule& start, const Target& target,
              MeasuredKernels& known, const MeterOptions& options);

  // Seconds of a launch of each; infinity: it cannot be carried out. The start has to be among the
  // first that are asked for. An error: the start cannot be measured, or somebody cancelled.
  Result<std::vector<double>> seconds(std::span<const Schedule> schedules);
  // Measures all that have a time once more, and keeps that, too: how far two measurements of the
  // same code differ.
  Status repeat();
  // All that have a time, the start first, each machine code once.
  const TimedKernel& timed() const { return timed_; }
  int64_t compiles() const { return meter_ ? meter_->compiles() : 0; }
  // Races that were refused: the start took most_drift times as long as in another one, in each of
  // kMostRaces attempts. Who took part counts as what cannot be carried out, and is not kept.
  int64_t refused() const { return refused_; }
  static constexpr int kMostRaces = 3;

 private:
  Status measure(std::span<const KernelCandidate> fresh);
  Status make_meter();
  struct Race {
    std::vector<Measured> results;  // that of the start last; empty: it was refused
    double drift = 0;               // of the start, from its least time
  };
  Result<Race> race(std::span<const KernelCandidate> candidates);
  void note(const KernelCandidate& candidate, double seconds);

  const std::shared_ptr<const KernelBody> body_;
  const Schedule start_;
  const Target& target_;
  MeasuredKernels& known_;
  const MeterOptions options_;
  const std::string conditions_;
  std::optional<KernelMeter> meter_;  // once something has to be measured
  std::unordered_map<uint64_t, double> by_code_;
  TimedKernel timed_;
  double least_of_start_ = std::numeric_limits<double>::infinity();
  int64_t refused_ = 0;
};

// For searches. Trials are measured in batches, so that many are raced at once.
class TimedSchedules : public Pricer {
 public:
  TimedSchedules(const ScheduleSearch& space, KernelTimer& timer) : space_(space), timer_(timer) {}
  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override;
  size_t batch() const override { return 16; }
  int64_t compiles() const override { return timer_.compiles(); }

 private:
  const ScheduleSearch& space_;
  KernelTimer& timer_;
};

}  // namespace hone
