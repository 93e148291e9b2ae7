#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lab/data/layout_file.h"

// Graphs with measured configurations, whatever the task: what graph models learn from.
//
//   std::vector<ConfiguredGraph> graphs = HONE_TRY(load_graphs("op_tuning_data.pb"));

namespace hone {

struct ConfiguredGraph {
  std::string program;    // what it is called: the name of a file or of a module in it
  std::string sort = {};  // of layouts: "random", or "default" of those near it; may be empty
  tpu::OpGraph graph;
  // The configurable nodes; empty: a configuration is one of the kernel as a whole.
  std::vector<int32_t> config_nodes;
  tpu::Features configs;      // for each configuration a row for each configurable node, or one
  std::vector<double> times;  // by configuration: ns, or of kernels shares of the default's time
  LayoutTimes besides = {};   // what a data set knows of layouts
  double planned = 0;         // the time of the compiler's default; 0: unknown
  uint64_t target = 0;        // the fingerprint of what it was measured on; 0: nobody says
  size_t left_out = 0;        // configurations that load_graphs() has not taken

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

// The graphs of measurements of TpuGraphs (.pb), an .npz file, a folder of them, or a data set of
// hone, whose whole programs by layouts these are. All have configurations of one sort, the same
// columns, and one target. Takes only well_known() configurations.
Result<std::vector<ConfiguredGraph>> load_graphs(const std::filesystem::path& path);
// The .npz files of a folder, sorted, and of the folders in it, as of a tree of train, valid and
// test. Errors: there are no files, more files and folders than kMaxGraphFiles, or folders deeper
// than kMaxFolderDepth.
inline constexpr size_t kMaxGraphFiles = 100'000;
inline constexpr int kMaxFolderDepth = 8;
Result<std::vector<std::filesystem::path>> graph_files(const std::filesystem::path& folder);
// True if it is of a kernel with tiles, by the arrays that only one of the two sorts has.
Result<bool> is_tile(std::span<const NamedTensor> arrays);
// True if it is for load_graphs() alone: no data set of kernels.
bool are_graphs(const std::filesystem::path& path);

// The configurations of which at least half as much of the time was measured as of that of which
// most was: what the others take is mostly a price. All, if nobody says how much.
std::vector<size_t> well_known(const ConfiguredGraph& graph);

// Why models of the one cannot price the other; names the column.
Status check_columns(const tpu::Features& known, const tpu::Features& given, std::string_view what);

// These configurations alone.
ConfiguredGraph with_configs(const ConfiguredGraph& graph, std::span<const size_t> which);
// For each configuration, the first one that is equal to it.
std::vector<size_t> first_equals(const ConfiguredGraph& graph);

// Each configuration once, with the mean of the logarithms of its times. And how far times of one
// configuration are apart: a deviation of the logarithm, 0 where none was measured twice.
struct MergedConfigs {
  ConfiguredGraph graph;
  double noise = 0;
};
MergedConfigs merged(const ConfiguredGraph& graph);

// ---- Compression -------------------------------------------------------------------------------

// Keeps the configurable nodes and all nodes at most `hops` edges away from one, in their order.
// Each connected part of the other nodes becomes one node with the mean of its features and opcode
// 0, so that paths stay. A graph without configurable nodes stays as it is.
ConfiguredGraph compressed(const ConfiguredGraph& graph, int64_t hops);

// Neighbours of each node in both directions, each once.
std::vector<std::vector<int32_t>> neighbours_of(const tpu::OpGraph& graph);

}  // namespace hone
