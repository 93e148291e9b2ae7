#pragma once

#include <unordered_map>

#include "base/progress.h"
#include "kernel/kernel_body.h"

namespace hone {

struct PricedSchedule {
  Schedule schedule;
  double seconds = 0;
};

// The cheapest of a few schedules that can be carried out on a body, looked for once; a stage of a
// chain has one thread. Planning spends its time here, so this is where it stops when it is
// cancelled.
class ScheduleChooser {
 public:
  ScheduleChooser(const Target& target, int64_t threads, const CancelToken* cancel = nullptr)
      : target_(target), threads_(threads), cancel_(cancel) {}
  // The pointer stays good. Errors: interrupted.
  Result<const PricedSchedule*> choose(const KernelBody& body);
  const Target& target() const { return target_; }
  int64_t threads() const { return threads_; }

 private:
  const Target& target_;
  int64_t threads_;
  const CancelToken* cancel_;
  std::unordered_map<uint64_t, PricedSchedule> known_;  // by kernel hash
};

}  // namespace hone
