#pragma once

#include <unordered_map>

#include "plan/kernel_body.h"

namespace hone {

struct PricedSchedule {
  Schedule schedule;
  double seconds = 0;
};

// The cheapest of a few schedules that can be carried out on a body, looked for once.
class ScheduleChooser {
 public:
  ScheduleChooser(const Target& target, int64_t threads) : target_(target), threads_(threads) {}
  const PricedSchedule& choose(const KernelBody& body);
  const Target& target() const { return target_; }

 private:
  const Target& target_;
  int64_t threads_;
  std::unordered_map<uint64_t, PricedSchedule> known_;  // by kernel hash
};

}  // namespace hone
