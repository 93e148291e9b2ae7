#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/tpu/graph.h"

// Graphs with measured configurations, whatever the task: what graph models learn from.
//
//   std::vector<ConfiguredGraph> graphs = HONE_TRY(load_graphs("op_tuning_data.pb"));

namespace hone {

struct ConfiguredGraph {
  std::string program;  // what it is called: the name of a file or of a module in it
  tpu::OpGraph graph;
  // The configurable nodes; empty: a configuration is one of the kernel as a whole.
  std::vector<int32_t> config_nodes;
  tpu::Features configs;      // for each configuration a row for each configurable node, or one
  std::vector<double> times;  // by configuration: ns, or of kernels shares of the default's time

  size_t rows() const { return config_nodes.empty() ? 1 : config_nodes.size(); }
  std::span<const float> config(size_t i) const {  // the rows of a configuration
    const size_t size = rows() * configs.names.size();
    return std::span(configs.values).subspan(i * size, size);
  }
  bool operator==(const ConfiguredGraph&) const = default;
};

ConfiguredGraph configured(const tpu::TileGraph& tile, std::string program);
// Errors: no configurable nodes, so nothing to choose, or one that is named twice.
Result<ConfiguredGraph> configured(const tpu::LayoutGraph& layout, std::string program);

// Of measurements of TpuGraphs (.pb), an .npz file, a folder of them, or a data set of hone, whose
// whole programs by layouts these are. All have configurations of one sort, and the same columns.
Result<std::vector<ConfiguredGraph>> load_graphs(const std::filesystem::path& path);
// Whether it is for load_graphs() alone: no data set of kernels.
bool are_graphs(const std::filesystem::path& path);

// Why models of the one cannot price the other; names the column.
Status check_columns(const tpu::Features& known, const tpu::Features& given, std::string_view what);

// These configurations alone.
ConfiguredGraph with_configs(const ConfiguredGraph& graph, std::span<const size_t> which);
// By configuration: the first one that is equal to it.
std::vector<size_t> first_equals(const ConfiguredGraph& graph);

// Each configuration once, with the mean of the logarithms of its times; and how far times of one
// configuration are apart: a deviation of the logarithm, 0 where none was measured twice.
struct MergedConfigs {
  ConfiguredGraph graph;
  double noise = 0;
};
MergedConfigs merged(const ConfiguredGraph& graph);

// ---- Compression -------------------------------------------------------------------------------

// The configurable nodes and what is at most so many edges away from one, in the order in which
// they were. Of the other nodes, each part that hangs together becomes one node with the mean of
// its features and opcode 0, so that paths stay. A graph without configurable nodes stays as it is.
ConfiguredGraph compressed(const ConfiguredGraph& graph, int64_t hops);

// Neighbours of each node in both directions, each once.
std::vector<std::vector<int32_t>> neighbours_of(const tpu::OpGraph& graph);

}  // namespace hone
