// How many graphs a search for rewrites prices until it has what is cheapest, and how many it would
// if something told it where to look (docs/optimize.md):
//   today   the rules in the order of their files
//   oracle  the rules alone that the cheapest graph has, those with the most places first: what a
//           guide that chooses rules can save at most
//   prior   all rules, those first that other models' cheapest graphs have most often
//   --models=NAME,NAME   of the zoo
//   --graphs=N           priced at most (120)
// "graphs" are priced until the price is that of today's cheapest graph or less, 0: it was not
// reached; "fewer" is how many times fewer those are than today's; "gain" what that price promises.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/text.h"
#include "bench/flags.h"
#include "cost/analytic.h"
#include "rules/rule_files.h"
#include "search/graph_price.h"
#include "search/node_cost.h"
#include "search/rewrite_search.h"
#include "zoo/zoo.h"

namespace hone::bench::HONE_FILE {
namespace {

const Flag models("models", "squeezenet,mobilenet_v2,shufflenet_v2,wavenet");
const Flag most_graphs("graphs", "120");

struct Trace {
  std::vector<double> prices = {};           // of graphs, in the order in which they were priced
  std::map<std::string, double> rules = {};  // of the cheapest graph, with their places
  double before = 0, after = 0;
};

// How many prices it took to come down to this one; 0: it was not reached.
size_t graphs_until(const Trace& trace, double wanted) {
  const auto at = std::ranges::find_if(trace.prices,
                                       [&](double price) { return price <= wanted * (1 + 1e-6); });
  return at == trace.prices.end() ? 0 : static_cast<size_t>(at - trace.prices.begin()) + 1;
}

Result<Trace> traced(const std::string& name, std::span<const Rule> rules) {
  const Target target = HONE_TRY(host_target());
  const AnalyticCost cost(target);
  GraphPrice graphs(target, cost, {.threads = 1});
  const Graph graph = HONE_TRY(rewritable(HONE_TRY(build_zoo_model(name))));
  const NodeCost nodes[] = {node_cost(target, 0.25), node_cost(target, 0.02), node_cost(target, 1)};
  Trace trace;
  CancelToken enough;
  const auto price = [&](const Graph& candidate) -> Result<double> {
    const Result<double> seconds = graphs.quick(candidate);
    trace.prices.push_back(seconds.ok() ? *seconds : std::numeric_limits<double>::infinity());
    if (static_cast<double>(trace.prices.size()) >= most_graphs.number()) enough.cancel();
    return seconds;
  };
  RewriteOptions options;
  options.seconds = 3600;  // graphs are counted, not seconds
  options.egraph.seconds = 5;
  options.cancel = &enough;
  const Rewritten found = HONE_TRY(search_rewrites(graph, rules, price, nodes, options));
  for (const Rewrite& rewrite : found.rewrites) ++trace.rules[rewrite.rule];
  trace.before = found.before;
  trace.after = found.after;
  return trace;
}

// Those first that weigh most; those that weigh nothing last, or not at all.
std::vector<Rule> ordered(std::vector<Rule> rules, const std::map<std::string, double>& weights,
                          bool drops) {
  const auto weight = [&](const Rule& rule) {
    const auto at = weights.find(rule.name);
    return at == weights.end() ? 0 : at->second;
  };
  if (drops) std::erase_if(rules, [&](const Rule& rule) { return weight(rule) == 0; });
  std::vector<std::pair<double, size_t>> order;
  for (size_t r = 0; r < rules.size(); ++r) order.emplace_back(-weight(rules[r]), r);
  std::ranges::sort(order);
  std::vector<Rule> sorted;
  for (const auto& [negative, r] : order) sorted.push_back(rules[r]);
  return sorted;
}

std::map<std::string, Trace>& traces() {
  static std::map<std::string, Trace> all;
  return all;
}

// In how many of the other models' cheapest graphs each rule is.
std::map<std::string, double> prior_without(const std::string& name) {
  std::map<std::string, double> weights;
  for (const auto& [other, trace] : traces())
    if (other != name)
      for (const auto& [rule, times] : trace.rules) ++weights[rule];
  return weights;
}

enum class Way : uint8_t { today, oracle, prior };

Status measure(benchmark::State& state, const std::string& name, Way way) {
  const std::vector<Rule> rules = HONE_TRY(default_rules());
  if (way == Way::today) traces()[name] = HONE_TRY(traced(name, rules));
  const Trace& today = traces()[name];
  const Trace trace =
      way == Way::today
          ? today
          : HONE_TRY(traced(name, way == Way::oracle ? ordered(rules, today.rules, true)
                                                     : ordered(rules, prior_without(name), false)));
  const size_t graphs = graphs_until(trace, today.after);
  state.counters["graphs"] = static_cast<double>(graphs);
  state.counters["gain"] = today.before / today.after;
  if (graphs > 0)
    state.counters["fewer"] =
        static_cast<double>(graphs_until(today, today.after)) / static_cast<double>(graphs);
  return {};
}

const Rows rows([] {
  for (const auto& [way, title] : {std::pair(Way::today, "today"), std::pair(Way::oracle, "oracle"),
                                   std::pair(Way::prior, "prior")})
    for (std::string_view each : split(models.text(), ',')) {
      const std::string name(each);
      benchmark::RegisterBenchmark(fmt::format("{}/{}", title, name).c_str(),
                                   [name, way](benchmark::State& state) {
                                     for (auto _ : state)
                                       if (const Status status = measure(state, name, way);
                                           !status.ok())
                                         state.SkipWithError(status.error().what().c_str());
                                   })
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
    }
});

}  // namespace
}  // namespace hone::bench::HONE_FILE
