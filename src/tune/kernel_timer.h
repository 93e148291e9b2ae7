#pragma once

#include <limits>
#include <optional>

#include "learn/fit_prices.h"
#include "tune/measured_kernels.h"

namespace hone {

// Times schedules of one kernel: for tuning, for data sets and for prices. A schedule is built,
// looked up by its code, and measured only if nothing is known of it. All that are new of a request
// are raced at once, with the start, and are kept.
class KernelTimer {
 public:
  // The schedule is what the others are raced with. Target and what is known outlive it.
  KernelTimer(std::shared_ptr<const KernelFacts> facts, const Schedule& start, const Target& target,
              MeasuredKernels& known, const MeterOptions& options);

  struct Answer {
    double seconds = kNoTime;  // of a launch
    bool is_new = false;       // no schedule of the same code was asked for before
  };
  static constexpr double kNoTime = std::numeric_limits<double>::infinity();
  // Asks for schedules, one after another, until `most` of them were new. The later ones
  // have no time, nor has what cannot be carried out. The first request has to begin with the
  // start, if times of the start matter. An error: the start cannot be measured, or somebody
  // cancelled.
  Result<std::vector<Answer>> ask(std::span<const Schedule> schedules,
                                  size_t most = std::numeric_limits<size_t>::max());
  // The seconds of all.
  Result<std::vector<double>> seconds(std::span<const Schedule> schedules);
  // Measures these once more, in one race of `rounds`, and keeps that, too.
  Result<std::vector<double>> again(std::span<const Schedule> schedules, int64_t rounds);
  // Measures what is doubtful once more, and keeps that, too.
  Status renew(double most_noise);
  // Measures all that have a time once more, and keeps that, too: how far two measurements of the
  // same code differ.
  Status repeat();
  // All that have a time, in the order in which they were asked for, each machine code once.
  const TimedKernel& timed() const { return timed_; }
  // How many of these have no more noise; none if the first has.
  size_t certain(double most_noise) const;
  int64_t compiles() const { return meter_ ? meter_->compiles() : 0; }
  // Races that were refused: the start took most_drift times as long as in another one, in each of
  // kMostRaces attempts. Who took part has no time, and is not kept.
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
  Result<std::vector<Taken>> measure(std::span<const KernelCandidate> candidates,
                                     int64_t rounds = KernelMeter::kRounds);
  Status make_meter();
  struct Race {
    std::vector<Measured> results;  // that of the start last; empty: it was refused
    double drift = 0;               // of the start, from its least time
  };
  Result<Race> race(std::span<const KernelCandidate> candidates, int64_t rounds);
  Result<std::vector<KernelCandidate>> candidates_of(std::span<const Schedule> schedules) const;
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

}  // namespace hone
