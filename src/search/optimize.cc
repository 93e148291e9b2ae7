#include "search/optimize.h"

#include <algorithm>
#include <chrono>

#include "plan/planned.h"
#include "search/node_cost.h"

namespace hone {
namespace {

// A graph and its regions, the outer ones first.
class Optimizer {
 public:
  Optimizer(std::span<const Rule> rules, const Target& target, const Cost& cost,
            const OptimizeOptions& options)
      : rules_(rules),
        target_(target),
        options_(options),
        price_(target, cost, {options.threads, options.rewrite.cancel}) {}

  Result<Optimized> run(const Graph& given) {
    result_.plan.graph = given.name();
    result_.before = HONE_TRY(price_.exact(given));
    const Graph primitive = HONE_TRY(rewritable(given));
    frames_left_ = count(primitive);
    HONE_TRY(search(primitive, result_.plan));
    return std::move(result_);
  }

 private:
  double left() const {
    const auto now = std::chrono::steady_clock::now();
    return options_.rewrite.seconds - std::chrono::duration<double>(now - began_).count();
  }

  // Frames with something to rewrite, and what they are made of.
  size_t count(const Graph& graph) {
    result_.nodes += graph.node_count();
    result_.outside += nodes_outside(graph, rules_);
    size_t frames = 1;
    for (const RegionRef& region : regions_of(graph)) frames += count(*region.graph);
    return frames;
  }

  // The time that one frame leaves goes to the others.
  Status search(const Graph& graph, Plan& plan) {
    const auto quick = [&](const Graph& candidate) { return price_.quick(candidate); };
    // From where elementwise ops are nearly free to where nothing is fused.
    const NodeCost nodes[] = {node_cost(target_, 0.25), node_cost(target_, 0.02),
                              node_cost(target_, 1)};
    RewriteOptions options = options_.rewrite;
    options.seconds = left() / static_cast<double>(std::max<size_t>(frames_left_, 1));
    frames_left_ -= frames_left_ > 1 ? 1 : 0;
    if (&plan != &result_.plan) options.assumed_decades = 0;  // of the inputs of a region
    Rewritten found = HONE_TRY(search_rewrites(graph, rules_, quick, nodes, options));
    result_.priced += found.priced;
    result_.end = std::max(result_.end, found.end);
    if (&plan == &result_.plan) result_.egraph = std::move(found.egraph);
    plan.rewrite = std::move(found.rewrites);
    for (const RegionRef& region : regions_of(found.graph)) {
      Plan inner;
      HONE_TRY(search(*region.graph, inner));
      if (has_rewrites(inner)) plan.region[region.key] = only_rewrites(inner);
    }
    return {};
  }

  const std::span<const Rule> rules_;
  const Target& target_;
  const OptimizeOptions& options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  GraphPrice price_;
  size_t frames_left_ = 0;
  Optimized result_;
};

}  // namespace

Result<Optimized> optimize(const Graph& graph, std::span<const Rule> rules, const Target& target,
                           const Cost& cost, const OptimizeOptions& options) {
  if (!graph.is_static())
    return unsupported("the cheapest graph depends on the open size {}", graph.symbols()[0].name());
  // A Cost that is trusted with schedules alone tells schedules of a kernel apart, not graphs.
  const Cost* const baseline = cost.baseline();
  const Cost& price = baseline != nullptr ? *baseline : cost;
  Optimized result = HONE_TRY(Optimizer(rules, target, price, options).run(graph));
  result.graph = HONE_TRY(rewritten(graph, result.plan, rules));
  // A graph may be cheap only because of its stand-ins. Who has cancelled waits for it, too: the
  // result is what was found.
  GraphPrice last(target, price, {options.threads, nullptr});
  result.after = has_rewrites(result.plan) ? HONE_TRY(last.exact(result.graph)) : result.before;
  result.least = std::min(result.after, result.before);
  result.is_cheaper = result.after < (1 - options.margin) * result.before;
  if (!result.is_cheaper) {
    result.graph = graph;
    result.after = result.before;
    result.plan = Plan();
    result.plan.graph = graph.name();
  }
  return result;
}

}  // namespace hone
