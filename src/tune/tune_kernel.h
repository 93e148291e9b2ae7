#pragma once

#include <functional>
#include <map>

#include "cost/cost.h"
#include "log/log.h"
#include "search/search.h"
#include "tune/kernel_meter.h"

// The best schedule of one kernel, found by measuring.

namespace hone {

// The time of a launch.
struct KernelTime {
  double seconds = 0;
  double noise = 0;  // a standard deviation, relative to it
};

// The measured times of candidates by their code, from this process and, if there is one, from
// the log. A record of the log counts if it is of the same code on the same target under the same
// conditions.
class MeasuredKernels {
 public:
  // The log may be null, and outlives it. The version of hone stands in records.
  MeasuredKernels(Log* log, const Target& target, std::string version);

  // Infinity: the candidate cannot be carried out. None: nothing is known.
  Result<std::optional<KernelTime>> time(uint64_t code, const std::string& conditions);
  Result<std::optional<double>> seconds(uint64_t code, const std::string& conditions);
  // The time in the log by kernel and schedule, whichever hone compiled it.
  Result<std::optional<KernelTime>> time_of(uint64_t kernel, const Schedule& schedule,
                                            const std::string& conditions);
  // Keeps what a race has found, in the log, too, as long as that can be written. The noise is that
  // of the records.
  void keep(const std::string& conditions, std::span<const KernelCandidate> candidates,
            std::span<const Measured> results, double noise = 0);
  // The known time of the candidate's code becomes known of its kernel, by its schedule: another
  // kernel may have the same code. `by_schedule`: even if the kernel has it by another schedule.
  Status adopt(const KernelCandidate& candidate, const std::string& conditions, bool by_schedule);
  // True if the log has records of the kernel on this target.
  Result<bool> has_kernel(uint64_t hash) const;
  int64_t reused() const { return reused_; }  // answers that an earlier process has measured
  // Why the log could not be written, the first time; nothing was written after that.
  const std::optional<Error>& unwritten() const { return unwritten_; }

 private:
  Log* const log_;
  const uint64_t target_;
  const std::string target_text_;
  const std::string version_;
  std::map<std::pair<uint64_t, std::string>, KernelTime> known_;
  int64_t reused_ = 0;
  std::optional<Error> unwritten_;
};

struct TuneKernelOptions {
  MeterOptions meter = {};
  SearchOptions search = {};             // trials are candidates that the search asks about
  std::string_view by = "evolutionary";  // a row of searches.def
  const Search* own_search = nullptr;    // in its place
  // The share of candidates of a search that are measured: the cheapest by price.
  double measured_share = 0.25;
  // Hears how many candidates have a time or have none to have, after each race.
  std::function<void(int64_t measured)> stepped = {};
};

struct TunedKernel {
  Schedule schedule;     // that it began with, unless another is surely faster
  double seconds = 0;    // of a launch, as the last race says
  double before = 0;     // the same of the schedule that it began with
  int64_t trials = 0;    // schedules that were looked at
  int64_t measured = 0;  // candidates of different code that have a time, or have none to have
  int64_t needed = 0;    // of these, until one was within 1 % of the fastest
  int64_t compiles = 0;
  bool is_changed() const { return seconds < before; }
  // The schedules that were faster than the first one in the last race, the fastest first.
  std::vector<Schedule> faster = {};
};

// Searches the space of a kernel from the schedule that it has. A candidate is priced, built,
// looked up by its code, and measured only if nothing is known of it; in the end the best few are
// raced against the start.
Result<TunedKernel> tune_kernel(const std::shared_ptr<const KernelFacts>& facts,
                                const Schedule& start, const Target& target, const Cost& cost,
                                MeasuredKernels& known, const TuneKernelOptions& options);

}  // namespace hone
