#include "lab/models/judge_graphs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "lab/models/layout_sums.h"
#include "learn/ranking.h"

namespace hone {
namespace {

// Configurations that were run whole.
struct WholeRuns {
  std::vector<size_t> which;
  std::vector<double> times, noise;
};

WholeRuns whole_runs(const ConfiguredGraph& graph) {
  constexpr double kHalves = 1.96;  // deviations of a normal number that half of its interval is
  const auto& [priced, noise, known, whole, whole_noise] = graph.besides;
  WholeRuns runs;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == 0) continue;
    runs.which.push_back(i);
    runs.times.push_back(static_cast<double>(whole[i]));
    runs.noise.push_back(whole_noise.empty() ? 0 : static_cast<double>(whole_noise[i]) / kHalves);
  }
  return runs;
}

OrderVerdict order_verdict(std::span<const double> scores, const ConfiguredGraph& graph,
                           const WholeRuns& whole) {
  const std::vector<double>& times = graph.times;
  OrderVerdict verdict = {.tau = kendall_tau(scores, times),
                          .top1 = regret(scores, times, 1) - 1,
                          .top5 = regret(scores, times, 5) - 1,
                          .top10 = regret(scores, times, 10) - 1,
                          .area = area_under_curve(scores, slow_cluster(times)),
                          .whole = {}};
  if (whole.which.size() < kManyRuns) return verdict;
  std::vector<double> some;
  for (size_t i : whole.which) some.push_back(scores[i]);
  verdict.whole = kendall_tau(some, whole.times);
  return verdict;
}

}  // namespace

double tau_of_replicates(std::span<const double> times, std::span<const double> noise) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < times.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const double apart = std::abs(std::log(times[i] / times[j]));
      if (apart == 0) continue;
      // The true difference is off by the noise of both, and so is another measurement of it.
      sum += std::erf(apart / (2 * std::hypot(noise[i], noise[j])));
      ++pairs;
    }
  return pairs == 0 ? 0 : sum / pairs;
}

GraphVerdict judged(std::span<const double> scores, const ConfiguredGraph& graph) {
  const std::vector<double>& times = graph.times;
  const WholeRuns whole = whole_runs(graph);
  const double best = *std::ranges::min_element(times);
  GraphVerdict verdict;
  static_cast<OrderVerdict&>(verdict) = order_verdict(scores, graph, whole);
  verdict.program = graph.program;
  verdict.sort = graph.sort;
  verdict.runs = times.size();
  verdict.whole_runs = whole.which.size();
  if (const std::vector<float>& priced = graph.besides.priced; !priced.empty())
    verdict.priced = order_verdict(std::vector<double>(priced.begin(), priced.end()), graph, whole);
  verdict.random =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()) / best -
      1;
  if (graph.planned > 0) verdict.planned = std::max(graph.planned / best - 1, 0.0);
  if (verdict.whole) verdict.ceiling = tau_of_replicates(whole.times, whole.noise);
  return verdict;
}

namespace {

// Counts pairs that were scored at once.
double tau_within_chunks(std::span<const double> scores, std::span<const double> times) {
  double sum = 0, pairs = 0;
  for (size_t first = 0; first < scores.size(); first += kScoredAtOnce) {
    const size_t size = std::min<size_t>(kScoredAtOnce, scores.size() - first);
    const auto count = static_cast<double>(size * (size - 1));
    sum += count * kendall_tau(scores.subspan(first, size), times.subspan(first, size));
    pairs += count;
  }
  return pairs == 0 ? 0 : sum / pairs;
}

std::vector<size_t> in_order_of(std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(scores[i], i); });
  return order;
}

}  // namespace

Result<RankedScores> ranked(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile) {
  Result<std::vector<double>> scores = scores_of(model, graph, compile);
  if (!scores.ok()) return Error(scores.error()).within(graph.program);
  if (!model.network.compares) {
    const double tau = kendall_tau(*scores, graph.times);
    return RankedScores{*std::move(scores), tau};
  }
  RankedScores ranked = {*scores, tau_within_chunks(*scores, graph.times)};
  const std::vector<size_t> order = in_order_of(*scores);
  const size_t count = std::min<size_t>(kScoredAtOnce, order.size());
  const auto best = std::span(order).first(count);
  const std::vector<double> anew = HONE_TRY(scores_of(model, with_configs(graph, best), compile));
  // Scores become places.
  double place = 0;
  for (size_t i : in_order_of(anew)) ranked.scores[best[i]] = place++;
  for (size_t i : std::span(order).subspan(count)) ranked.scores[i] = place++;
  return ranked;
}

Result<GraphVerdict> judged(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile) {
  const RankedScores found = HONE_TRY(ranked(model, graph, compile));
  GraphVerdict verdict = judged(found.scores, graph);
  verdict.tau = found.tau;
  return verdict;
}

namespace {

// Takes numbers as they come.
class Mean {
 public:
  void add(double number) {
    sum_ += number;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / count_);
  }

 private:
  double sum_ = 0, count_ = 0;
};

struct MeanOrder {
  Mean tau, top1, top5, top10, area, whole, share;

  void add(const OrderVerdict& order, std::optional<double> ceiling) {
    tau.add(order.tau);
    top1.add(order.top1);
    top5.add(order.top5);
    top10.add(order.top10);
    area.add(order.area);
    if (order.whole) whole.add(*order.whole);
    if (order.whole && ceiling && *ceiling > 0) share.add(*order.whole / *ceiling);
  }
  std::optional<OrderVerdict> value() const {
    if (!tau.value()) return std::nullopt;
    return OrderVerdict{.tau = *tau.value(),
                        .top1 = *top1.value(),
                        .top5 = *top5.value(),
                        .top10 = *top10.value(),
                        .area = *area.value(),
                        .whole = whole.value()};
  }
};

template <class Condition>
std::vector<GraphVerdict> those(std::span<const GraphVerdict> verdicts, const Condition& is_one) {
  std::vector<GraphVerdict> some;
  std::ranges::copy_if(verdicts, std::back_inserter(some), is_one);
  return some;
}

}  // namespace

MeanGraphVerdict mean_of(std::span<const GraphVerdict> verdicts) {
  MeanOrder model, priced, summed;
  Mean random, planned;
  for (const GraphVerdict& each : verdicts) {
    model.add(each, each.ceiling);
    if (each.priced) priced.add(*each.priced, each.ceiling);
    if (each.summed) summed.add(*each.summed, each.ceiling);
    random.add(each.random);
    if (each.planned) planned.add(*each.planned);
  }
  return {.graphs = verdicts.size(),
          .model = model.value().value_or(OrderVerdict()),
          .priced = priced.value(),
          .summed = summed.value(),
          .random = random.value().value_or(0),
          .planned = planned.value(),
          .share = model.share.value(),
          .priced_share = priced.share.value()};
}

std::vector<GraphVerdict> those_with_many_runs(std::span<const GraphVerdict> verdicts) {
  return those(verdicts, [](const GraphVerdict& each) { return each.runs >= kManyRuns; });
}

std::vector<GraphVerdict> those_of_sort(std::span<const GraphVerdict> verdicts,
                                        std::string_view sort) {
  return those(verdicts, [&](const GraphVerdict& each) { return each.sort == sort; });
}

Result<std::vector<GraphVerdict>> leave_one_out(std::span<const ConfiguredGraph> graphs,
                                                const GraphTraining& options) {
  const std::vector<std::string> programs = programs_of(graphs);
  if (programs.size() < 2)
    return bad_input("only '{}' is there: without it nothing is left to learn from",
                     graphs[0].program);
  std::vector<GraphVerdict> verdicts;
  for (const std::string& program : programs) {
    std::vector<ConfiguredGraph> others;
    for (const ConfiguredGraph& each : graphs)
      if (each.program != program) others.push_back(each);
    const GraphModel model = HONE_TRY(train_graph_model(others, options));
    for (const ConfiguredGraph& each : graphs) {
      if (each.program != program) continue;
      verdicts.push_back(HONE_TRY(judged(model, each, options.compile)));
    }
  }
  return verdicts;
}

Result<DividedConfigs> divided_configs(const ConfiguredGraph& graph, uint64_t seed) {
  const std::vector<size_t> firsts = first_equals(graph);
  const std::vector<bool> is_slow = slow_cluster(graph.times);
  std::array<std::set<size_t>, 2> clusters;  // first ones of equal configurations
  for (size_t i = 0; i < firsts.size(); ++i)
    if (firsts[i] == i) clusters[is_slow[i] ? 1 : 0].insert(i);
  if (clusters[0].size() + clusters[1].size() < 3)
    return bad_input("'{}' has {} different configurations: too few to divide them", graph.program,
                     clusters[0].size() + clusters[1].size());
  if (clusters[0].size() < 2 || clusters[1].size() < 2) clusters[0].merge(clusters[1]);
  Rng rng(seed);
  std::set<size_t> test;
  for (const std::set<size_t>& cluster : clusters) {
    if (cluster.empty()) continue;
    std::vector<size_t> order(cluster.begin(), cluster.end());
    rng.shuffle(order);
    order.resize(std::max<size_t>(order.size() / 3, 1));
    test.insert(order.begin(), order.end());
  }
  std::vector<size_t> trained, tested;
  for (size_t i = 0; i < firsts.size(); ++i)
    (test.contains(firsts[i]) ? tested : trained).push_back(i);
  DividedConfigs divided = {with_configs(graph, trained), with_configs(graph, tested), {}};
  for (size_t i : tested) divided.is_slow.push_back(is_slow[i]);
  return divided;
}

Result<std::vector<GraphVerdict>> judged_by_configs(const ConfiguredGraph& graph, int64_t splits,
                                                    const GraphTraining& options) {
  std::vector<GraphVerdict> verdicts;
  for (int64_t s = 0; s < splits; ++s) {
    const auto [known, unseen, is_slow] =
        HONE_TRY(divided_configs(graph, hash_combine(options.seed, static_cast<uint64_t>(s + 1))));
    const GraphModel model = HONE_TRY(train_graph_model({&known, 1}, options));
    const RankedScores found = HONE_TRY(ranked(model, unseen, options.compile));
    const std::vector<double> sums = LayoutSums(known).scores(unseen);
    GraphVerdict verdict = judged(found.scores, unseen);
    verdict.program = fmt::format("split {}", s + 1);
    verdict.tau = found.tau;
    verdict.area = area_under_curve(found.scores, is_slow);
    verdict.summed = judged(sums, unseen);
    verdict.summed->area = area_under_curve(sums, is_slow);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

Result<std::vector<GraphVerdict>> judged_by_programs(std::span<const ConfiguredGraph> graphs,
                                                     std::span<const ProgramSplit> splits,
                                                     const GraphTraining& options) {
  std::vector<GraphVerdict> verdicts;
  for (const ProgramSplit& split : splits) {
    std::vector<ConfiguredGraph> known = HONE_TRY(part(graphs, split, Part::train));
    for (ConfiguredGraph& each : HONE_TRY(part(graphs, split, Part::validation)))
      known.push_back(std::move(each));
    const GraphModel model = HONE_TRY(train_graph_model(known, options));
    for (const ConfiguredGraph& each : HONE_TRY(part(graphs, split, Part::test)))
      verdicts.push_back(HONE_TRY(judged(model, each, options.compile)));
  }
  return verdicts;
}

Result<std::vector<ConfiguredGraph>> part(std::span<const ConfiguredGraph> graphs,
                                          const ProgramSplit& split, Part part) {
  const std::vector<std::string> programs = programs_of(graphs);
  std::set<std::string> known, wanted;  // by name of their files
  for (const std::string& program : programs) known.insert(file_name_of(program));
  for (Part each : kParts)
    for (const std::string& program : split.of(each)) {
      if (!known.contains(file_name_of(program)))
        return bad_input("the data has no program '{}', which the split names", excerpt(program))
            .with_hint(did_you_mean(program, programs));
      if (each == part) wanted.insert(file_name_of(program));
    }
  std::vector<ConfiguredGraph> some;
  for (const ConfiguredGraph& graph : graphs)
    if (wanted.contains(file_name_of(graph.program))) some.push_back(graph);
  return some;
}

std::vector<std::string> programs_of(std::span<const ConfiguredGraph> graphs) {
  std::set<std::string> programs;
  for (const ConfiguredGraph& each : graphs) programs.insert(each.program);
  return {programs.begin(), programs.end()};
}

}  // namespace hone
