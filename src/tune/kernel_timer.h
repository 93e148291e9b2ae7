#pragma once

#include <limits>
#include <optional>

#include "learn/fit_prices.h"
#include "search/schedule_search.h"
#include "tune/tune_kernel.h"

// Times schedules of a kernel, for data sets: every one that is asked for is measured, or known
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
  // Measures what is doubtful once more, and keeps that, too.
  Status renew(double most_noise);
  // Measures all that have a time once more, and keeps that, too: how far two measurements of the
  // same code differ.
  Status repeat();
  // All that have a time, the start first, each machine code once.
  const TimedKernel& timed() const { return timed_; }
  // How many of these have no more noise; none if the start has.
  size_t certain(double most_noise) const;
  int64_t compiles() const { return meter_ ? meter_->compiles() : 0; }
  // Races that were refused: the start took most_drift times as long as in another one, in each of
  // kMostRaces attempts. Who took part counts as what cannot be carried out, and is not kept.
  int64_t refused() const { return refused_; }
  static constexpr int kMostRaces = 3;

  // The time of a schedule in a race.
  struct Taken {
    double seconds = 0;
    double noise = 0;  // a standard deviation, relative to it
    double start = 0;  // seconds of the start in the same race; 0: the log does not say
  };
  // It has more noise, or the start took most_drift times its least in the same race: the machine
  // was slower than later, or than before.
  static bool is_doubtful(const Taken& taken, double most_noise, double least_of_start,
                          double most_drift) {
    return taken.noise > most_noise || taken.start >= most_drift * least_of_start;
  }

 private:
  // Races the candidates and keeps what they take; none: the race was refused.
  Result<std::vector<Taken>> measure(std::span<const KernelCandidate> candidates);
  Status make_meter();
  struct Race {
    std::vector<Measured> results;  // that of the start last; empty: it was refused
    double drift = 0;               // of the start, from its least time
  };
  Result<Race> race(std::span<const KernelCandidate> candidates);
  void note(const KernelCandidate& candidate, const Taken& taken);

  const std::shared_ptr<const KernelBody> body_;
  const Schedule start_;
  const Target& target_;
  MeasuredKernels& known_;
  const MeterOptions options_;
  const std::string conditions_;
  std::optional<KernelMeter> meter_;  // once something has to be measured
  std::unordered_map<uint64_t, double> by_code_;
  TimedKernel timed_;
  std::vector<Taken> taken_;  // of timed_
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
