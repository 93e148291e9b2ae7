#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "compile/compilation.h"
#include "formats/npz.h"
#include "lab/models/graph_network.h"

// Models of graphs that order configurations: trained, kept in a file, asked for scores.
//
//   const auto graphs = HONE_TRY(load_graphs("set"));
//   const GraphModel model = HONE_TRY(train_graph_model(graphs, {}));
//   const std::vector<double> scores = HONE_TRY(scores_of(model, other));  // lower is faster

namespace hone {

struct GraphModel {
  GraphNetworkOptions network;
  int64_t hops = -1;     // of compressed(); -1: graphs as they are
  bool by_node = false;  // configurations are of nodes
  int64_t segments = 0;  // nodes of a segment; scores are sums over segments; 0: whole graphs
  uint64_t target = 0;   // as of ConfiguredGraph
  std::vector<std::string> programs;                      // that it has learned from, sorted
  std::vector<std::string> node_columns, config_columns;  // that features have
  GraphScale scale;
  std::vector<NamedTensor> weights;
};

struct GraphTraining {
  GraphNetworkOptions network = {};
  int64_t hops = -1;
  int64_t epochs = 30;
  double rate = 0.003;
  int64_t slate = 16, slates = 8;  // configurations of a graph, graphs in a batch
  int64_t draws = 8;               // slates of a graph in an epoch
  int64_t segments = 0;            // the nodes of each (graph_segments.h); 0: graphs as a whole
  uint64_t seed = 0;
  CompileOptions compile = {};
  std::function<void(std::string_view)> told = {};  // a line for each network
  // Gets the number of steps done and the weights, which the next step overwrites.
  std::function<void(int64_t, std::span<const NamedTensor>)> on_step = {};
};
// The training that suits graphs like these: sums of scores of nodes where those are configurable.
GraphTraining training_for(const ConfiguredGraph& graph);

// Equal configurations count once, with their mean time. Errors: nothing differs, or less than two
// configurations.
Result<GraphModel> train_graph_model(std::span<const ConfiguredGraph> graphs,
                                     const GraphTraining& options);

// Graphs as networks see them: compressed, equal configurations once. Graphs with only one are left
// out; none is an error. The known noise of each time, by graph, goes to `noise`.
Result<std::vector<ConfiguredGraph>> graphs_to_learn_from(std::span<const ConfiguredGraph> graphs,
                                                          int64_t hops,
                                                          std::vector<double>* noise = nullptr);
// All of a model but its weights. An error if configurations do not differ.
Result<GraphModel> model_for(std::span<const ConfiguredGraph> given,
                             std::span<const ConfiguredGraph> learned,
                             const GraphTraining& options);

inline constexpr int64_t kScoredAtOnce = 32;  // configurations
// For each configuration, a number that is lower where the configuration is faster; if the network
// compares, than others of the same kScoredAtOnce. Errors: a graph of another target, with other
// columns than the model knows, with configurations of another sort, or without the prices that a
// skeleton needs.
Result<std::vector<double>> scores_of(const GraphModel& model, const ConfiguredGraph& graph,
                                      const CompileOptions& compile = {});
// The scores of several graphs, all of which one compiled network takes: padded to the largest one.
Result<std::vector<std::vector<double>>> scores_of_all(const GraphModel& model,
                                                       std::span<const ConfiguredGraph> graphs,
                                                       const CompileOptions& compile = {});
Status check_fits(const GraphModel& model, const ConfiguredGraph& graph);

inline constexpr std::string_view kGraphModelFormat = "hone graph model 4";
// A safetensors file, all of which a checksum covers. Refused by name: damage, another kind of
// model, features of another version. Graphs of another target are refused.
Status write_graph_model(const std::filesystem::path& path, const GraphModel& model);
Result<GraphModel> read_graph_model(const std::filesystem::path& path);

}  // namespace hone
