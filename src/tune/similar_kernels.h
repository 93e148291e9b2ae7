#pragma once

#include <string>
#include <vector>

#include "cost/features.h"
#include "kernel/facts.h"
#include "kernel/schedule.h"
#include "log/log.h"
#include "target/target.h"

namespace hone {

// The fastest schedules of the kernels in a log: the first candidates of kernels that are like
// them, so that tuning starts where it ended elsewhere.
class SimilarKernels {
 public:
  // The kernels that were measured on the target by this number of threads. Records that this
  // version of hone does not take count as absent.
  static Result<SimilarKernels> of(const Log& log, const Target& target, int64_t threads);

  // Schedules of the nearest kernels of its sort that fit the kernel, the nearest first, each once:
  // `most` at most. Nearest by the features that do not depend on the schedule.
  std::vector<Schedule> of(const KernelFacts& facts, size_t most) const;

  size_t size() const { return kernels_.size(); }

 private:
  struct Kernel {
    std::string kind;
    size_t dims = 0;
    Features features;
    Schedule fastest;
  };
  SimilarKernels(const Target& target, int64_t threads) : target_(target), threads_(threads) {}
  Features features_of(const KernelFacts& facts) const;

  const Target target_;
  const int64_t threads_;
  std::vector<Kernel> kernels_;
};

// The schedule for a kernel with other sizes: tiles that are larger than their dims take all of
// them. It may still not fit.
Schedule fitted_to(Schedule schedule, const KernelFacts& facts);

}  // namespace hone
