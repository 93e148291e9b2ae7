#include "tune/search_edits.h"

#include "cost/plan_cost.h"
#include "planner/planner.h"
#include "planner/schedules.h"
#include "search/plan_search.h"

namespace hone {
namespace {

constexpr std::string_view kBy = "descent";  // docs/search.md: the best on edits

}  // namespace

Result<std::optional<Plan>> search_edits(const Graph& graph, const Plan& plan, const Target& target,
                                         const Cost& cost, std::span<const EditKind> kinds,
                                         const Heuristics& heuristics,
                                         const SearchOptions& options) {
  const std::unique_ptr<PlanEditor> editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  KernelStore store;
  const ChooseSchedule planned = planner_schedules(target, cost, store);
  const auto choose = [&](const std::shared_ptr<const KernelFacts>& facts,
                          int64_t threads) -> Result<PricedSchedule> {
    const auto said = plan.schedule.find(facts->hash);
    if (said == plan.schedule.end()) return planned(facts, threads);
    return PricedSchedule{said->second, cost.kernel(facts, threads)->seconds(said->second)};
  };
  PlanCost price(*editor, cost, store, choose);
  PlanSearch space(*editor, kinds);
  PricedPlans prices(space, price);
  const SearchResult found = HONE_TRY((*find_search(kBy))->run(space, prices, options));
  if (found.cost > kCheaper * found.start_cost) return std::optional<Plan>();
  const Plan edited = HONE_TRY(space.plan(found.best, price));
  Result<Plan> whole =
      complete(graph, edited, target, cost, {.cancel = options.cancel, .heuristics = heuristics});
  if (whole.ok()) return std::optional(*std::move(whole));
  if (whole.error().code() == ErrorCode::interrupted) return std::move(whole).error();
  return std::optional<Plan>();
}

}  // namespace hone
