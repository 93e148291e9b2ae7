#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "log/log.h"
#include "tune/kernel_meter.h"

// The times of kernels that are known, and the records of new ones.

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
  // The same. Another kernel may have the same code: then the log learns the time of this kernel,
  // too, by its schedule. `by_schedule`: even if it has the kernel's time by another schedule.
  Result<std::optional<KernelTime>> recall(const KernelCandidate& candidate,
                                           const std::string& conditions, bool by_schedule);
  // The time in the log by kernel and schedule, whichever hone compiled it.
  Result<std::optional<KernelTime>> time_of(uint64_t kernel, const Schedule& schedule,
                                            const std::string& conditions);
  // Keeps what a race has found, in the log, too, as long as that can be written. The noise is that
  // of the records.
  void keep(const std::string& conditions, std::span<const KernelCandidate> candidates,
            std::span<const Measured> results, double noise = 0);
  // True if the log has records of the kernel on this target.
  Result<bool> has_kernel(uint64_t hash) const;
  int64_t reused() const { return reused_; }  // answers that an earlier process has measured
  // Why the log could not be written, the first time; nothing was written after that.
  const std::optional<Error>& unwritten() const { return unwritten_; }

 private:
  Status adopt(const KernelCandidate& candidate, const std::string& conditions, bool by_schedule);

  Log* const log_;
  const uint64_t target_;
  const std::string target_text_;
  const std::string version_;
  std::map<std::pair<uint64_t, std::string>, KernelTime> known_;
  int64_t reused_ = 0;
  std::optional<Error> unwritten_;
};

}  // namespace hone
