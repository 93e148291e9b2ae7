#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learn/models/graph_model.h"
#include "learn/models/judge_prices.h"

// How good models of graphs are for graphs, or configurations, that they have not learned from.

namespace hone {

// Of one graph. Regrets: 0.03 is 3 % slower than its fastest configuration.
struct GraphVerdict {
  std::string program;
  size_t runs = 0;
  double tau = 0;
  double top1 = 0, top5 = 0;      // of the first by score, and of the best of the first five
  double random = 0;              // of any, on average
  std::optional<double> planned;  // of the compiler's default, if times are shares of its time
  double area = 0;                // under the curve, for the slow cluster against the fast one
};
GraphVerdict judged(std::span<const double> scores, const ConfiguredGraph& graph);
Result<GraphVerdict> judged(const GraphModel& model, const ConfiguredGraph& graph,
                            const CompileOptions& compile);

inline constexpr size_t kManyRuns = 10;  // of a graph, to say much about it
// Means; with `many`, over graphs with so many runs. `planned` of those that have it.
struct MeanGraphVerdict {
  size_t graphs = 0;
  double tau = 0, top1 = 0, top5 = 0, random = 0, planned = 0;
};
MeanGraphVerdict mean_of(std::span<const GraphVerdict> verdicts, bool many);

// A model for each graph, trained without it. Graphs of one program are left out together.
Result<std::vector<GraphVerdict>> leave_one_out(std::span<const ConfiguredGraph> graphs,
                                                const GraphTraining& options);
// Models that are trained on two thirds of the configurations of one graph, judged by the others.
// Equal configurations stay together, and both clusters are divided.
Result<std::vector<GraphVerdict>> judged_by_configs(const ConfiguredGraph& graph, int64_t splits,
                                                    const GraphTraining& options);
// Models that are trained on some programs, judged by others; one verdict for each graph of
// Part::test and split.
Result<std::vector<GraphVerdict>> judged_by_programs(std::span<const ConfiguredGraph> graphs,
                                                     int64_t splits, const GraphTraining& options);

// The graphs of the programs of a part. An error names a program that no graph is of.
Result<std::vector<ConfiguredGraph>> part(std::span<const ConfiguredGraph> graphs,
                                          const ProgramSplit& split, Part part);
std::vector<std::string> programs_of(std::span<const ConfiguredGraph> graphs);  // sorted

}  // namespace hone
