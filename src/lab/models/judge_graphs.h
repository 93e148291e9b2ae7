#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/models/graph_model.h"
#include "learn/models/judge_prices.h"

// How good models of graphs are for graphs, or configurations, that they have not learned from.

namespace hone {

// How well some numbers, lower for faster ones, order configurations. Regrets: 0.03 is 3 % slower
// than the fastest one.
struct OrderVerdict {
  double tau = 0;
  double top1 = 0, top5 = 0, top10 = 0;  // of the first, and of the best of the first 5 and 10
  double area = 0;                       // under the curve, for the slow cluster against the fast
  std::optional<double> whole;           // tau by whole runs
};

// The verdict on one graph.
struct GraphVerdict : OrderVerdict {  // by a model
  std::string program, sort;          // as of its ConfiguredGraph
  size_t runs = 0, whole_runs = 0;
  std::optional<OrderVerdict> priced;  // by price
  std::optional<OrderVerdict> summed;  // by LayoutSums of other assignments of the same graph
  double random = 0;                   // regret of any, on average
  std::optional<double> planned;       // regret of the compiler's default
  std::optional<double> ceiling;       // tau of whole runs and as many more, by their noise
};
GraphVerdict judged(std::span<const double> scores, const ConfiguredGraph& graph);
// Judges by ranked() scores. If the network compares, tau is that of configurations that it has
// compared.
Result<GraphVerdict> judged(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile);

// Scores in the order in which the model would try configurations. If its network compares, the
// best kScoredAtOnce by scores of some at once are scored anew, all together, and come first.
struct RankedScores {
  std::vector<double> scores;
  double tau = 0;  // of those that were scored together
};
Result<RankedScores> ranked(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile);

// The average kendall_tau() between these times and a second measurement of each. The model:
// logarithms are off by normal numbers of these deviations, and nothing else is known of the true
// ones.
double tau_of_replicates(std::span<const double> times, std::span<const double> noise);

inline constexpr size_t kManyRuns = 10;  // of a graph, to say much about it
// Means over graphs, of each number over those that have it.
struct MeanGraphVerdict {
  size_t graphs = 0;
  OrderVerdict model;
  std::optional<OrderVerdict> priced, summed;
  double random = 0;
  std::optional<double> planned;
  std::optional<double> share, priced_share;  // of the ceiling, that the tau of whole runs is
};
MeanGraphVerdict mean_of(std::span<const GraphVerdict> verdicts);
// The verdicts on some graphs.
std::vector<GraphVerdict> those_with_many_runs(std::span<const GraphVerdict> verdicts);
std::vector<GraphVerdict> those_of_sort(std::span<const GraphVerdict> verdicts,
                                        std::string_view sort);

// A model for each graph, trained without it. Graphs of one program are left out together.
Result<std::vector<GraphVerdict>> leave_one_out(std::span<const ConfiguredGraph> graphs,
                                                const GraphTraining& options);
// Two thirds of the configurations of one graph, and the others. Equal ones stay together. Both
// clusters are divided, or all at once if one of them has a single configuration.
struct DividedConfigs {
  ConfiguredGraph known, unseen;
  std::vector<bool> is_slow;  // by unseen one: its cluster among all
};
Result<DividedConfigs> divided_configs(const ConfiguredGraph& graph, uint64_t seed);
// Models that are trained on two thirds of the configurations of one graph, judged by the others,
// and beside them LayoutSums.
Result<std::vector<GraphVerdict>> judged_by_configs(const ConfiguredGraph& graph, int64_t splits,
                                                    const GraphTraining& options);
// Models that are trained on Part::train and Part::validation, judged by Part::test: one verdict
// for each graph of it and split.
Result<std::vector<GraphVerdict>> judged_by_programs(std::span<const ConfiguredGraph> graphs,
                                                     std::span<const ProgramSplit> splits,
                                                     const GraphTraining& options);

// The graphs of the programs of a part. An error names a program that no graph is of.
Result<std::vector<ConfiguredGraph>> part(std::span<const ConfiguredGraph> graphs,
                                          const ProgramSplit& split, Part part);
std::vector<std::string> programs_of(std::span<const ConfiguredGraph> graphs);  // sorted

}  // namespace hone
