#include "tune/best_plan.h"

#include "target/fingerprint.h"

namespace hone {

std::optional<KnownPlan> best_plan(const Log& log, const Graph& graph, const Target& target,
                                   int64_t threads) {
  const Result<std::optional<BestPlan>> known =
      log.best(hash_without_weights(graph), fingerprint(target), threads);
  if (!known.ok() || !*known) return std::nullopt;
  Result<Plan> plan = parse_plan((*known)->plan, "the log");
  if (!plan.ok() || !plan->threads) return std::nullopt;
  return KnownPlan{*std::move(plan), (*known)->gain, (*known)->low, (*known)->high};
}

}  // namespace hone
