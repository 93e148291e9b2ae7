#include "session/found_rewrites.h"

#include "base/hash.h"
#include "base/late_progress.h"
#include "base/text.h"
#include "compile/cached_plan.h"
#include "cost/gpu_cost.h"
#include "rules/rule_files.h"

namespace hone {
namespace {

// All that a search looks at.
std::string key_of(const Graph& graph, const Plan& threads, const Target& target, const Cost& cost,
                   const FoundRewritesOptions& options) {
  Hasher rules;
  for (const RuleFile& file : rule_files()) rules.add(file.text);
  return plan_key(graph, threads, target, cost, options.heuristics, "rewrites") +
         fmt::format("search {} rules {:016x} seconds {} margin {} range {}\n", HONE_SEARCH_VERSION,
                     rules.value(), options.seconds, options.margin, options.assumed_decades);
}

// "38 rewrites, 4.0 % cheaper by price"
std::string told(const Optimized& result) {
  size_t rewrites = 0;
  for (const AppliedRule& each : applied_rules(result.plan)) rewrites += each.times;
  std::string text = fmt::format(
      "rewriting: {} graphs priced; {}; {} of {} nodes have ops of no "
      "rule; ",
      result.priced, name(result.end), result.outside, result.nodes);
  if (!result.is_cheaper)
    return text + (result.least < result.before
                       ? fmt::format("{:.2f} % less by price is within its error",
                                     100 * (1 - result.least / result.before))
                       : "nothing is cheaper");
  return text + fmt::format("{} rewrites, {:.2f} % less by price", rewrites,
                            100 * (1 - result.after / result.before));
}

Result<Plan> found_by_search(const Graph& graph, const Target& target, const Cost& cost,
                             int64_t threads, const FoundRewritesOptions& options) {
  const Face& face = options.face;
  LateProgress progress(face.progress);
  progress.start(0, "graphs");
  OptimizeOptions optimizing;
  optimizing.threads = threads;
  optimizing.margin = options.margin;
  optimizing.rewrite.seconds = options.seconds;
  optimizing.rewrite.assumed_decades = options.assumed_decades;
  optimizing.rewrite.cancel = face.cancel;
  optimizing.rewrite.progress = &progress;
  optimizing.rewrite.told = [&](std::string_view line) { face.note(line); };
  const std::vector<Rule> rules = HONE_TRY(default_rules());
  Optimized result = HONE_TRY(optimize(graph, rules, target, cost, optimizing));
  if (face.cancel != nullptr) HONE_TRY(face.cancel->check());
  face.note(told(result));
  return std::move(result.plan);
}

}  // namespace

decltype(NativeOptions::find_rewrites) rewrites_by_search(FoundRewritesOptions options) {
  return [options = std::move(options)](const Graph& graph, const Target& target,
                                        int64_t threads) -> Result<Plan> {
    if (!graph.is_static()) {
      options.face.note(
          fmt::format("not rewritten: the size {} is open", graph.symbols()[0].name()));
      return Plan();
    }
    const std::shared_ptr<const Cost> cost =
        options.cost != nullptr ? options.cost : analytic_cost(target);
    Plan open;
    open.threads = threads;
    const bool is_kept = options.cache != nullptr && !cost->version().empty();
    const std::string key = is_kept ? key_of(graph, open, target, *cost, options) : "";
    if (is_kept)
      if (const std::optional<std::string> text = options.cache->find(key))
        if (Result<Plan> known = parse_plan(*text);
            known.ok() && *known == only_rewrites(*known) && rewritten(graph, *known).ok())
          return known;
    Plan found = HONE_TRY(found_by_search(graph, target, *cost, threads, options));
    // A cache that cannot be written to costs time, nothing else.
    if (is_kept) (void)options.cache->put(key, print(found)).ok();
    return found;
  };
}

}  // namespace hone
