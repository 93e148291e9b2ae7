#include "lab/data/configured_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/text.h"
#include "lab/tpu/features.h"
#include "lab/tpu/tuning_data.h"
#include "learn/data_set.h"
#include "log/hash_text.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Graphs = std::vector<ConfiguredGraph>;

Result<ConfiguredGraph> graph_of(std::span<const NamedTensor> arrays, const fs::path& path) {
  const bool has_tiles = HONE_TRY(is_tile(arrays));
  if (has_tiles) {
    const TileFile file = HONE_TRY(tile_file_of(arrays));
    ConfiguredGraph graph =
        configured(file.tile, file.program.empty() ? program_of_file(path) : file.program);
    graph.target = file.target;
    return graph;
  }
  LayoutFile file = HONE_TRY(layout_file_of(arrays));
  if (file.program.empty()) file.program = program_of_file(path);
  ConfiguredGraph graph = HONE_TRY(configured(file.layout, file.program));
  graph.sort = sort_of_file(path);
  graph.besides = std::move(file.times);
  graph.target = file.target;
  // In files of hone the default is the first one.
  if (!graph.sort.empty() && !graph.times.empty()) graph.planned = graph.times[0];
  return graph;
}

Result<Graphs> graphs_of(std::span<const tpu::TuningModule> modules) {
  Graphs graphs;
  for (size_t i = 0; i < modules.size(); ++i) {
    const auto timed = std::ranges::find_if(modules[i].runs, &tpu::TuningRun::is_timed);
    if (timed == modules[i].runs.end()) continue;
    const std::string name = fmt::format("{:05}-{}", i, hash_text(modules[i].fingerprint));
    const auto added = [&]() -> Result<ConfiguredGraph> {
      if (timed->has_tile) return configured(HONE_TRY(tpu::tile_graph_of(modules[i])), name);
      return configured(HONE_TRY(tpu::layout_graph_of(modules[i])), name);
    };
    Result<ConfiguredGraph> graph = added();
    if (!graph.ok()) return Error(graph.error()).within(name);
    graphs.push_back(*std::move(graph));
  }
  return graphs;
}

Status check_alike(const Graphs& graphs) {
  for (const ConfiguredGraph& each : graphs) {
    const ConfiguredGraph& first = graphs[0];
    if (each.config_nodes.empty() != first.config_nodes.empty())
      return bad_input("'{}' and '{}' have configurations of different kinds", first.program,
                       each.program)
          .with_hint("tiles of kernels and layouts of programs are for different models");
    for (Status status : {check_target(first.target, each.target),
                          check_columns(first.graph.nodes, each.graph.nodes, "nodes"),
                          check_columns(first.configs, each.configs, "configurations")})
      if (!status.ok()) return std::move(status).error().within(each.program);
  }
  return {};
}

}  // namespace

ConfiguredGraph configured(const tpu::TileGraph& tile, std::string program) {
  ConfiguredGraph graph = {.program = std::move(program),
                           .graph = tile.graph,
                           .config_nodes = {},
                           .configs = tile.configs,
                           .times = {},
                           .planned = 1};
  for (size_t i = 0; i < tile.runtimes.size(); ++i)
    graph.times.push_back(static_cast<double>(tile.runtimes[i]) /
                          static_cast<double>(tile.normalizers[i]));
  return graph;
}

Result<ConfiguredGraph> configured(const tpu::LayoutGraph& layout, std::string program) {
  if (layout.config_nodes.empty()) return bad_input("the graph has no configurable nodes");
  std::vector<int32_t> sorted = layout.config_nodes;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return bad_input("the array 'node_config_ids' has the node {} twice", *twice);
  return ConfiguredGraph{.program = std::move(program),
                         .graph = layout.graph,
                         .config_nodes = layout.config_nodes,
                         .configs = layout.configs,
                         .times = {layout.runtimes.begin(), layout.runtimes.end()}};
}

Result<bool> is_tile(std::span<const NamedTensor> arrays) {
  const auto find = [&](std::initializer_list<std::string_view> names) {
    for (std::string_view name : names)
      if (std::ranges::find(arrays, name, &NamedTensor::name) != arrays.end()) return name;
    return std::string_view();
  };
  const std::string_view tile = find({"config_feat", "config_runtime_normalizers"});
  const std::string_view layout = find({"node_config_feat", "node_config_ids"});
  if (!tile.empty() && !layout.empty())
    return bad_input("it has both '{}', of kernels with tiles, and '{}', of programs with layouts",
                     tile, layout);
  if (tile.empty() && layout.empty())
    return bad_input(
        "it has neither 'config_feat', as kernels with tiles have, nor "
        "'node_config_feat', as programs with layouts have");
  return !tile.empty();
}

Result<std::vector<fs::path>> graph_files(const fs::path& folder) {
  std::vector<fs::path> files;
  size_t seen = 0;
  std::error_code failed, unknown;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (++seen > kMaxGraphFiles)
      return over_limit("there are more than {} files and folders in '{}'", kMaxGraphFiles,
                        excerpt(folder.native()));
    if (!at->is_directory(unknown)) {
      if (at->path().extension() == ".npz") files.push_back(at->path());
    } else if (at.depth() == kMaxFolderDepth) {
      return over_limit("the folder '{}' is deeper than {} in '{}'", excerpt(at->path().native()),
                        kMaxFolderDepth, excerpt(folder.native()));
    }
  }
  if (failed) return bad_input("'{}' cannot be listed", excerpt(folder.native()));
  if (files.empty())
    return bad_input("there are no .npz files in '{}'", excerpt(folder.native()))
        .with_hint("'hone dataset build --task layout' measures whole programs by many layouts");
  std::ranges::sort(files);
  return files;
}

bool are_graphs(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed) && !fs::exists(path / "dataset.json", failed);
}

namespace {

Result<Graphs> read_files(std::span<const fs::path> files) {
  Graphs graphs;
  for (const fs::path& file : files) {
    Result<ConfiguredGraph> graph = graph_of(HONE_TRY(tpu::read_arrays(file)), file);
    if (!graph.ok()) return Error(graph.error()).within(file.native());
    graphs.push_back(*std::move(graph));
  }
  return graphs;
}

// Files of before do not say what the set does.
Result<Graphs> read_set(const fs::path& folder) {
  const uint64_t target = fingerprint(HONE_TRY(DataSet::open(folder.native())).info().target);
  const std::vector<fs::path> files = HONE_TRY(graph_files(folder / "layout"));
  Graphs graphs = HONE_TRY(read_files(files));
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (graphs[i].target == 0) graphs[i].target = target;
    if (Status same = check_target(target, graphs[i].target); !same.ok())
      return std::move(same).error().within(files[i].native());
  }
  return graphs;
}

Result<Graphs> read_any(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path / "dataset.json", failed)) return read_set(path);
  if (fs::is_directory(path, failed)) return read_files(HONE_TRY(graph_files(path)));
  if (path.extension() != ".pb") return read_files({&path, 1});
  Result<Graphs> modules = graphs_of(HONE_TRY(tpu::read_tuning_data(path)));
  if (!modules.ok()) return Error(modules.error()).within(path.native());
  return modules;
}

}  // namespace

Result<Graphs> load_graphs(const fs::path& path) {
  Graphs graphs = HONE_TRY(read_any(path));
  for (ConfiguredGraph& graph : graphs) {
    const std::vector<size_t> known = well_known(graph);
    const size_t left_out = graph.times.size() - known.size();
    if (left_out > 0) graph = with_configs(graph, known);
    graph.left_out = left_out;
  }
  std::erase_if(graphs, [](const ConfiguredGraph& each) { return each.times.empty(); });
  if (graphs.empty()) return bad_input("there are no timed configurations").within(path.native());
  if (Status status = check_alike(graphs); !status.ok())
    return std::move(status).error().within(path.native());
  return graphs;
}

std::vector<size_t> well_known(const ConfiguredGraph& graph) {
  const std::vector<float>& known = graph.besides.known;
  const float most = known.empty() ? 0 : *std::ranges::max_element(known);
  std::vector<size_t> which;
  for (size_t i = 0; i < graph.times.size(); ++i)
    if (known.empty() || 2 * known[i] >= most) which.push_back(i);
  return which;
}

Status check_columns(const tpu::Features& known, const tpu::Features& given,
                     std::string_view what) {
  const size_t count = std::min(known.names.size(), given.names.size());
  for (size_t i = 0; i < count; ++i)
    if (known.names[i] != given.names[i])
      return bad_input("column {} of the {} is '{}', not '{}'", i, what, excerpt(given.names[i]),
                       excerpt(known.names[i]));
  if (known.names.size() == given.names.size()) return {};
  return bad_input("the {} have {} columns, not {}", what, given.names.size(), known.names.size())
      .with_hint(
          "'hone dataset export DATA -o FOLDER --schema tpu' keeps the published columns alone");
}

ConfiguredGraph with_configs(const ConfiguredGraph& graph, std::span<const size_t> which) {
  ConfiguredGraph some = {.program = graph.program,
                          .sort = graph.sort,
                          .graph = graph.graph,
                          .config_nodes = graph.config_nodes,
                          .configs = {.names = graph.configs.names, .values = {}},
                          .times = {},
                          .planned = graph.planned,
                          .target = graph.target};
  for (size_t i : which) {
    const std::span<const float> config = graph.config(i);
    some.configs.values.insert(some.configs.values.end(), config.begin(), config.end());
    some.times.push_back(graph.times[i]);
    for (const LayoutColumn& column : kLayoutColumns)
      if (const std::vector<float>& values = graph.besides.*column.values; !values.empty())
        (some.besides.*column.values).push_back(values[i]);
  }
  return some;
}

std::vector<size_t> first_equals(const ConfiguredGraph& graph) {
  std::map<std::vector<float>, size_t> known;
  std::vector<size_t> firsts;
  for (size_t i = 0; i < graph.times.size(); ++i) {
    const std::span<const float> config = graph.config(i);
    firsts.push_back(known.emplace(std::vector(config.begin(), config.end()), i).first->second);
  }
  return firsts;
}

MergedConfigs merged(const ConfiguredGraph& graph) {
  const std::vector<size_t> firsts = first_equals(graph);
  std::map<size_t, std::vector<double>> times;  // logarithms, by the first configuration
  for (size_t i = 0; i < firsts.size(); ++i) times[firsts[i]].push_back(std::log(graph.times[i]));
  std::vector<size_t> which;
  for (const auto& [first, its] : times) which.push_back(first);
  MergedConfigs merged = {.graph = with_configs(graph, which)};
  double squares = 0, count = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    const std::vector<double>& its = times[which[i]];
    const auto size = static_cast<double>(its.size());
    const double mean = std::accumulate(its.begin(), its.end(), 0.0) / size;
    merged.graph.times[i] = std::exp(mean);
    for (double each : its) squares += (each - mean) * (each - mean);
    count += size - 1;
  }
  if (count > 0) merged.noise = std::sqrt(squares / count);
  return merged;
}

// ---- Compression -------------------------------------------------------------------------------

std::vector<std::vector<int32_t>> neighbours_of(const tpu::OpGraph& graph) {
  std::vector<std::vector<int32_t>> neighbours(graph.opcodes.size());
  for (const auto& [reader, read] : graph.edges) {
    if (reader == read) continue;
    neighbours[static_cast<size_t>(reader)].push_back(read);
    neighbours[static_cast<size_t>(read)].push_back(reader);
  }
  for (std::vector<int32_t>& each : neighbours) {
    std::ranges::sort(each);
    const auto rest = std::ranges::unique(each);
    each.erase(rest.begin(), rest.end());
  }
  return neighbours;
}

namespace {

class Compressor {
 public:
  Compressor(const ConfiguredGraph& graph, int64_t hops)
      : graph_(graph),
        neighbours_(neighbours_of(graph.graph)),
        part_(graph.graph.opcodes.size(), kNone) {
    keep(hops);
    gather();
  }

  ConfiguredGraph run() const {
    ConfiguredGraph small = graph_;
    const size_t columns = graph_.graph.nodes.names.size();
    small.graph.opcodes.assign(members_.size(), 0);
    small.graph.nodes.values.assign(members_.size() * columns, 0);
    for (size_t p = 0; p < members_.size(); ++p) {
      const auto size = static_cast<float>(members_[p].size());
      for (size_t node : members_[p])
        for (size_t f = 0; f < columns; ++f)
          small.graph.nodes.values[p * columns + f] += graph_.graph.nodes.row(node)[f] / size;
      if (members_[p].size() == 1) small.graph.opcodes[p] = graph_.graph.opcodes[members_[p][0]];
    }
    small.graph.edges.clear();
    for (const auto& [reader, read] : graph_.graph.edges) {
      const std::array<int32_t, 2> edge = {part(reader), part(read)};
      if (edge[0] != edge[1]) small.graph.edges.push_back(edge);
    }
    std::ranges::sort(small.graph.edges);
    const auto rest = std::ranges::unique(small.graph.edges);
    small.graph.edges.erase(rest.begin(), rest.end());
    for (int32_t& node : small.config_nodes) node = part(node);
    return small;
  }

 private:
  static constexpr int32_t kNone = -1;

  int32_t part(int32_t node) const { return part_[static_cast<size_t>(node)]; }

  // The nodes that stay.
  void keep(int64_t hops) {
    keeps_.assign(part_.size(), false);
    std::vector<int32_t> last = graph_.config_nodes;
    for (int32_t node : last) keeps_[static_cast<size_t>(node)] = true;
    for (int64_t hop = 0; hop < hops && !last.empty(); ++hop) {
      std::vector<int32_t> next;
      for (int32_t node : last)
        for (int32_t other : neighbours_[static_cast<size_t>(node)])
          if (!keeps_[static_cast<size_t>(other)]) {
            keeps_[static_cast<size_t>(other)] = true;
            next.push_back(other);
          }
      last = std::move(next);
    }
  }

  // Numbers what becomes one node, by its first member.
  void gather() {
    for (size_t first = 0; first < part_.size(); ++first) {
      if (part_[first] != kNone) continue;
      const auto number = static_cast<int32_t>(members_.size());
      std::vector<size_t>& members = members_.emplace_back(1, first);
      part_[first] = number;
      if (keeps_[first]) continue;
      for (size_t i = 0; i < members.size(); ++i)
        for (int32_t other : neighbours_[members[i]]) {
          const auto at = static_cast<size_t>(other);
          if (keeps_[at] || part_[at] != kNone) continue;
          part_[at] = number;
          members.push_back(at);
        }
    }
  }

  const ConfiguredGraph& graph_;
  const std::vector<std::vector<int32_t>> neighbours_;
  std::vector<bool> keeps_;
  std::vector<int32_t> part_;                 // by node: the node that it becomes
  std::vector<std::vector<size_t>> members_;  // of these
};

}  // namespace

ConfiguredGraph compressed(const ConfiguredGraph& graph, int64_t hops) {
  return graph.config_nodes.empty() ? graph : Compressor(graph, hops).run();
}

}  // namespace hone
