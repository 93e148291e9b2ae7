#include "learn/models/judge_graphs.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "learn/ranking.h"

namespace hone {
namespace {

// What a data set calls the file of a program: "zoo_mlp_size=tiny" of "zoo:mlp,size=tiny".
std::string name_of_file(std::string program) {
  for (char& c : program)
    if (std::string_view("/:, \\").find(c) != std::string_view::npos) c = '_';
  return program;
}

}  // namespace

GraphVerdict judged(std::span<const double> scores, const ConfiguredGraph& graph) {
  const std::vector<double>& times = graph.times;
  const double best = *std::ranges::min_element(times);
  const double mean =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  GraphVerdict verdict = {.program = graph.program,
                          .runs = times.size(),
                          .tau = kendall_tau(scores, times),
                          .top1 = regret(scores, times, 1) - 1,
                          .top5 = regret(scores, times, 5) - 1,
                          .random = mean / best - 1,
                          .planned = {},
                          .area = area_under_curve(scores, slow_cluster(times))};
  if (graph.config_nodes.empty()) verdict.planned = std::max(1 / best - 1, 0.0);
  return verdict;
}

Result<GraphVerdict> judged(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile) {
  Result<std::vector<double>> scores = scores_of(model, graph, compile);
  if (!scores.ok()) return Error(scores.error()).within(graph.program);
  return judged(*scores, graph);
}

MeanGraphVerdict mean_of(std::span<const GraphVerdict> verdicts, bool many) {
  MeanGraphVerdict mean;
  double planned = 0;
  for (const GraphVerdict& each : verdicts) {
    if (many && each.runs < kManyRuns) continue;
    ++mean.graphs;
    mean.tau += each.tau;
    mean.top1 += each.top1;
    mean.top5 += each.top5;
    mean.random += each.random;
    mean.planned += each.planned.value_or(0);
    if (each.planned) ++planned;
  }
  const double count = std::max<double>(static_cast<double>(mean.graphs), 1);
  for (double* each : {&mean.tau, &mean.top1, &mean.top5, &mean.random}) *each /= count;
  mean.planned /= std::max(planned, 1.0);
  return mean;
}

Result<std::vector<GraphVerdict>> leave_one_out(std::span<const ConfiguredGraph> graphs,
                                                const GraphTraining& options) {
  const std::vector<std::string> programs = programs_of(graphs);
  if (programs.size() < 2)
    return bad_input("there is only '{}': without it nothing is left to learn from",
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

Result<std::vector<GraphVerdict>> judged_by_configs(const ConfiguredGraph& graph, int64_t splits,
                                                    const GraphTraining& options) {
  const std::vector<size_t> firsts = first_equals(graph);
  const std::vector<bool> is_slow = slow_cluster(graph.times);
  std::array<std::set<size_t>, 2> clusters;  // first ones of equal configurations
  for (size_t i = 0; i < firsts.size(); ++i)
    if (firsts[i] == i) clusters[is_slow[i] ? 1 : 0].insert(i);
  if (clusters[0].size() < 2 || clusters[1].size() < 2)
    return bad_input("'{}' has {} fast and {} slow configurations: too few to divide them",
                     graph.program, clusters[0].size(), clusters[1].size());
  std::vector<GraphVerdict> verdicts;
  for (int64_t s = 0; s < splits; ++s) {
    Rng rng(hash_combine(options.seed, static_cast<uint64_t>(s + 1)));
    std::set<size_t> test;
    for (const std::set<size_t>& cluster : clusters) {
      std::vector<size_t> order(cluster.begin(), cluster.end());
      rng.shuffle(order);
      order.resize(std::max<size_t>(order.size() / 3, 1));
      test.insert(order.begin(), order.end());
    }
    std::vector<size_t> trained, tested;
    for (size_t i = 0; i < firsts.size(); ++i)
      (test.contains(firsts[i]) ? tested : trained).push_back(i);
    const ConfiguredGraph known = with_configs(graph, trained);
    const ConfiguredGraph unseen = with_configs(graph, tested);
    const GraphModel model = HONE_TRY(train_graph_model({&known, 1}, options));
    const std::vector<double> scores = HONE_TRY(scores_of(model, unseen, options.compile));
    verdicts.push_back(judged(scores, unseen));
    verdicts.back().program = fmt::format("split {}", s + 1);
    // The clusters are those of all runs.
    std::vector<bool> slow;
    for (size_t i : tested) slow.push_back(is_slow[i]);
    verdicts.back().area = area_under_curve(scores, slow);
  }
  return verdicts;
}

Result<std::vector<GraphVerdict>> judged_by_programs(std::span<const ConfiguredGraph> graphs,
                                                     int64_t splits, const GraphTraining& options) {
  const std::vector<std::string> programs = programs_of(graphs);
  std::vector<GraphVerdict> verdicts;
  for (int64_t s = 0; s < splits; ++s) {
    const ProgramSplit split =
        HONE_TRY(random_split(programs, static_cast<uint64_t>(s + 1), {.validation = 0}));
    const GraphModel model =
        HONE_TRY(train_graph_model(HONE_TRY(part(graphs, split, Part::train)), options));
    for (const ConfiguredGraph& each : HONE_TRY(part(graphs, split, Part::test)))
      verdicts.push_back(HONE_TRY(judged(model, each, options.compile)));
  }
  return verdicts;
}

Result<std::vector<ConfiguredGraph>> part(std::span<const ConfiguredGraph> graphs,
                                          const ProgramSplit& split, Part part) {
  const std::vector<std::string> programs = programs_of(graphs);
  std::set<std::string> known, wanted;  // by name of their files
  for (const std::string& program : programs) known.insert(name_of_file(program));
  for (Part each : kParts)
    for (const std::string& program : split.of(each)) {
      if (!known.contains(name_of_file(program)))
        return bad_input("the data has no program '{}', which the split names", excerpt(program))
            .with_hint(did_you_mean(program, programs));
      if (each == part) wanted.insert(name_of_file(program));
    }
  std::vector<ConfiguredGraph> some;
  for (const ConfiguredGraph& graph : graphs)
    if (wanted.contains(name_of_file(graph.program))) some.push_back(graph);
  return some;
}

std::vector<std::string> programs_of(std::span<const ConfiguredGraph> graphs) {
  std::set<std::string> programs;
  for (const ConfiguredGraph& each : graphs) programs.insert(each.program);
  return {programs.begin(), programs.end()};
}

}  // namespace hone
