#include "cost/cost.h"

#include "cost/schedule_price.h"

namespace hone {

double AnalyticCost::launch(const KernelBody& body, const Schedule& schedule,
                            int64_t threads) const {
  return SchedulePrice(body, target_, threads).seconds(schedule);
}

// One thread reads and writes, where both fit.
double AnalyticCost::copy(double bytes) const {
  for (const CacheLevel& cache : target_.caches)
    if (2 * bytes <= static_cast<double>(cache.bytes)) return 2 * bytes / cache.bytes_per_second;
  return 2 * bytes / target_.memory_one_core;
}

// Measured: a launch of an empty kernel and a copy of no bytes take 5 to 9 ns.
double AnalyticCost::command() const { return 10e-9; }

}  // namespace hone
