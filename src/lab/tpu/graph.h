#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/npz.h"

// Graphs with measured configurations in the schema of TpuGraphs: what its .npz files hold, one for
// a kernel with tiles or for a module with layouts. docs/datasets.md has names, types and axes.

namespace hone::tpu {

inline constexpr int64_t kNodeFeatures = 140, kTileFeatures = 24, kLayoutFeatures = 18;
// The version of files whose features are wider than the published ones: they have names and this
// number.
inline constexpr int64_t kFeatureVersion = 1;

// The limits of a file. The largest published graph has some 50,000 nodes.
inline constexpr int64_t kMaxNodes = 1 << 20, kMaxEdges = 1 << 22, kMaxConfigs = 1 << 22;
inline constexpr int64_t kMaxColumns = 1 << 12;
// The bytes of its arrays for each byte of the file, beyond those that are free for any file.
inline constexpr int64_t kMaxArrayInflation = 400, kFreeArrayBytes = int64_t{64} << 20;

// Rows of features with their names.
struct Features {
  std::vector<std::string> names;  // by column
  std::vector<float> values;       // row by row
  size_t rows() const { return names.empty() ? 0 : values.size() / names.size(); }
  std::span<const float> row(size_t i) const {
    return std::span(values).subspan(i * names.size(), names.size());
  }
  bool operator==(const Features&) const = default;
};

struct OpGraph {
  Features nodes;
  std::vector<int32_t> opcodes;  // by node; 0: unknown
  // A node, and one that it reads, in order.
  std::vector<std::array<int32_t, 2>> edges;
  bool operator==(const OpGraph&) const = default;
};

struct TileGraph {
  OpGraph graph;
  Features configs;
  // For each configuration, in ns: its time, and that of the default one on the same machine.
  std::vector<int64_t> runtimes, normalizers;
  bool operator==(const TileGraph&) const = default;
};

struct LayoutGraph {
  OpGraph graph;
  std::vector<int32_t> config_nodes;  // the configurable ones
  Features configs;                   // for each configuration a row for each configurable node
  std::vector<int64_t> runtimes;      // by configuration, in ns
  std::vector<int64_t> splits;        // where computations begin, and the number of nodes; may be
                                      // empty
  bool operator==(const LayoutGraph&) const = default;
};

// Files with the published columns or with more, which have `node_feat_names`, `config_feat_names`
// or `node_config_feat_names`, and `feature_version`. Errors name the array that is missing, of
// another type or shape, or has a number that cannot be.
Result<TileGraph> read_tile_npz(const std::filesystem::path& path);
Result<LayoutGraph> read_layout_npz(const std::filesystem::path& path);
// All arrays of a file. Errors: what its headers declare is beyond the limits above, or does not
// fit together; then no data is inflated.
Result<std::vector<NamedTensor>> read_arrays(const std::filesystem::path& path);
Result<TileGraph> tile_graph_of(std::span<const NamedTensor> arrays);
Result<LayoutGraph> layout_graph_of(std::span<const NamedTensor> arrays);

// With the published columns alone there are neither names nor a version, as in the published
// files.
std::vector<NamedTensor> arrays_of(const TileGraph& graph);
std::vector<NamedTensor> arrays_of(const LayoutGraph& graph);

// The published columns alone; the names of those that are lost.
std::vector<std::string> keep_published(TileGraph& graph);
std::vector<std::string> keep_published(LayoutGraph& graph);

// Checks that the numbers make sense; the readers have checked them.
Status check(const TileGraph& graph);
Status check(const LayoutGraph& graph);

}  // namespace hone::tpu
