#pragma once

#include "assign/core.h"

namespace hone {

// The moments at which the limit can be passed. Among moments at which the same nodes are alive, or
// more at one of them, that one is enough.
struct CoreTimes {
  std::vector<int64_t> moments;  // ascending
  std::vector<CoreSpan> spans;   // by node of the problem: when it is alive
  std::vector<int64_t> slack;    // by moment: the limit, of which the least usages go as they come
  int usage_shift = 0;           // usages are divided by 2^usage_shift, and rounded up

  int64_t scaled(int64_t usage) const {
    const int64_t down = usage >> usage_shift;
    return down + ((down << usage_shift) == usage ? 0 : 1);
  }
  void use(const CoreSpan& span, int64_t usage) {
    for (uint32_t t = span.from; t < span.to; ++t) slack[t] -= usage;
  }
};

// An error, if the least usages of the nodes alive pass the limit at some moment.
Result<CoreTimes> core_times(const AssignProblem& problem);

// Leaves out times at which the nodes of the core cannot pass the limit. Among neighbours between
// which nothing begins or ends, the one with the least slack stays.
void drop_idle_times(Core& core);

}  // namespace hone
