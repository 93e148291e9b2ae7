#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "log/log.h"
#include "measure/samples.h"
#include "measure/timing.h"
#include "tune/kernel_candidate.h"

namespace hone {

class CudaDevice;
class GpuRace;

// The conditions of a measurement: only measurements under equal conditions compare.
struct MeterConditions {
  int64_t threads = 1;
  // Inputs that are not in caches when a launch begins, as weights are in a model with more of
  // them than caches hold. The others are where the launch before has left them.
  std::vector<bool> cold = {};
  bool all_cold = false;  // so are all inputs, however many a kernel has
  // "protocol=1 threads=1 cold=010"
  std::string text() const;
};

struct MeterOptions {
  MeterConditions conditions = {};
  uint64_t seed = 0;            // of operands and their places
  double compile_seconds = 20;  // for one candidate; the compiler for a GPU cannot be stopped
  // For some launches. On a GPU nothing stops a launch: one that took longer has no second one.
  double launch_seconds = 10;
  // For compiling, and for operands; on a GPU its free memory is the limit.
  int64_t memory_bytes = int64_t{4} << 30;
  // The drift of the champion, from one race of a KernelTimer to another one: a race with more is
  // refused. Infinity: each race counts by itself.
  double most_drift = 1.25;
  bool compares_races() const { return std::isfinite(most_drift); }
  bool drops = true;  // who is clearly slower takes part in no more rounds
  const CancelToken* cancel = nullptr;
  std::shared_ptr<const CudaDevice> device = nullptr;  // that runs them, if the target is a GPU
  // How candidates become code.
  std::function<Result<std::string>(const KernelCandidate&, const Target&)> compile = object_of;
};

// Nothing, if the error is that of one candidate and others can be measured. Otherwise the error,
// which ends all of it: somebody has cancelled, or the GPU is lost. Null: a CPU runs them.
Status unless_own(const Error& error, const CudaDevice* device);

struct Measured {
  Outcome outcome = Outcome::refused;
  std::string detail = {};           // why there are no samples
  std::vector<double> seconds = {};  // of a launch, one after another at each of the places
  bool is_ahead = false;             // it took part to the end of the race
};

// Compiles and measures candidates of one kernel. For CPUs both happen in copies of this process: a
// candidate that crashes, hangs or wants too much memory costs its own time and no more. Compiling
// takes all cores, then nothing but the race runs. Results have to be those of the champion before
// a time counts. For a GPU a GpuRace does all of it, in this process.
class KernelMeter {
 public:
  // The champion is a candidate whose results are right. Target and what the options point to
  // outlive it. An error: the champion cannot be measured.
  static Result<KernelMeter> make(KernelCandidate champion, const Target& target,
                                  const MeterOptions& options);

  // Measures each candidate. All are raced with the champion, which comes last in the result: a
  // sample of each in turns. Who is clearly slower after some of the rounds drops out.
  Result<std::vector<Measured>> race(std::span<const KernelCandidate> candidates,
                                     int64_t rounds = kRounds);
  static constexpr int64_t kRounds = 9;

  // The rules of races, on CPUs and on GPUs.
  static constexpr double kRaceSeconds = 0.15;  // for one entrant; slow ones have fewer rounds
  static constexpr int64_t kLeastRounds = 3;    // one at each place
  // A candidate that takes this many times as long, after kLeastRounds, drops out; so does one
  // whose first launch that is timed takes kOut times as long as the champion's.
  static constexpr double kHopeless = 1.3, kOut = 3;
  static int64_t rounds_of(double champion, int64_t most) {
    return times_in(kRaceSeconds, champion, kLeastRounds, std::max(most, kLeastRounds));
  }

  const KernelCandidate& champion() const { return champion_; }
  // How many candidates were compiled.
  int64_t compiles() const;

 private:
  struct Entrant {
    const KernelCandidate* candidate = nullptr;
    std::string object = {};  // empty: it could not be compiled
    Measured result = {};
  };
  KernelMeter(KernelCandidate champion, const Target& target, const MeterOptions& options)
      : champion_(std::move(champion)), target_(target), options_(options) {}
  Status compile(std::span<Entrant> entrants);
  Status run(std::span<Entrant> entrants, int64_t rounds);
  void run_in_copy(std::span<Entrant> entrants, int64_t rounds,
                   const std::function<void(std::string_view)>& tell) const;

  KernelCandidate champion_;
  std::string champion_object_;
  const Target& target_;
  const MeterOptions options_;
  Operands operands_;
  std::shared_ptr<GpuRace> on_gpu_;  // null: a CPU runs them
  int64_t compiles_ = 0;
};

}  // namespace hone
