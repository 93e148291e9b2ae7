#include "session/known_plans.h"

#include "plan/rewritten.h"
#include "rules/known_ranges.h"
#include "tune/best_plan.h"

namespace hone {

decltype(NativeOptions::best_plan) known_plans(std::shared_ptr<const Log> log,
                                               std::function<void(std::string_view)> notice,
                                               std::string without, int32_t assumed_decades) {
  return [log = std::move(log), notice = std::move(notice), without = std::move(without),
          assumed_decades](const Graph& graph, const Target& target,
                           int64_t threads) -> std::optional<Plan> {
    const std::optional<KnownPlan> best = best_plan(*log, graph, target, threads);
    if (!best) return std::nullopt;
    const int32_t needed = assumed_range(best->plan);
    if (needed > 0 && (assumed_decades == 0 || assumed_decades > needed)) {
      notice(fmt::format("the log's plan is for inputs within {}: --assume-range says so",
                         range_text(needed)));
      return std::nullopt;
    }
    // With rewrites it is for another graph: whether it fits, the compilation finds out.
    if (!has_rewrites(best->plan) && !check_complete(best->plan, graph, target).ok()) {
      notice("the log's plan does not fit this version of hone; 'hone tune' looks for one");
      return std::nullopt;
    }
    notice(fmt::format("the log's plan, {:.2f}x as fast as the default ({}: without)", best->gain,
                       without));
    return best->plan;
  };
}

}  // namespace hone
