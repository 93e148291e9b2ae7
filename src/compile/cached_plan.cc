#include "compile/cached_plan.h"

#include "base/hash.h"
#include "ir/text_printer.h"

namespace hone {

std::string plan_key(const Graph& graph, const Plan& partial, const Target& target,
                     const Cost& cost, const Heuristics& heuristics, std::string_view what) {
  std::string key = fmt::format("{} ", what);
  append_label(key, '@', graph.name());
  // The text has the names; what is left out of it is in the other hash.
  const uint64_t text = hash_string(print(graph, {.elide = true}));
  key += fmt::format(" {}\nplanner {} without {}\nprice {}\ngraph {:016x} {:016x}\n",
                     name(target.isa), HONE_PLANNER_VERSION, left_out(heuristics), cost.version(),
                     structural_hash(graph), text);
  return key + print(target) + print(partial);
}

Result<Plan> cached_plan(const Graph& graph, const Plan& partial, const Target& target,
                         const Cost& cost, CompileCache* cache, const PlannerOptions& options) {
  if (cache == nullptr || cost.version().empty())
    return complete(graph, partial, target, cost, options);
  const std::string key = plan_key(graph, partial, target, cost, options.heuristics);
  if (const std::optional<std::string> text = cache->find(key)) {
    Result<Plan> known = parse_plan(*text);
    if (known.ok() && check_complete(*known, graph, target).ok()) return known;
  }
  Plan plan = HONE_TRY(complete(graph, partial, target, cost, options));
  // A cache that cannot be written to costs time, nothing else.
  (void)cache->put(key, print(plan)).ok();
  return plan;
}

}  // namespace hone
