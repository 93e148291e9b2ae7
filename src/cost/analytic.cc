#include "cost/analytic.h"

#include "base/hash.h"
#include "cost/analytic_kernel.h"

namespace hone {

AnalyticCost::AnalyticCost(Target target, Prices prices)
    : target_(std::move(target)), prices_(prices) {
  HONE_CHECK(!target_.gpu, "the target '{}' is a GPU", target_.name);
}

std::string AnalyticCost::version() const {
  const uint64_t hash = hash_string(print(prices_, ""), hash_string(print(target_)));
  return fmt::format("analytic {:016x}", hash);
}

std::unique_ptr<PricedKernel> AnalyticCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                                   int64_t threads) const {
  return std::make_unique<AnalyticKernel>(std::move(facts), target_, prices_, threads);
}

// One thread reads and writes, where both fit.
double AnalyticCost::copy(double bytes) const {
  for (const CacheLevel& cache : target_.caches)
    if (2 * bytes <= static_cast<double>(cache.bytes)) return 2 * bytes / cache.bytes_per_second;
  return 2 * bytes / target_.memory_one_core;
}

double AnalyticCost::command() const { return prices_.command * 1e-9; }

}  // namespace hone
