#include "learn/export_data.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "learn/tile_graph.h"
#include "log/hash_text.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// What TpuGraphs calls the parts.
std::string_view folder_of(Part part) { return part == Part::validation ? "valid" : name(part); }

class Exporter {
 public:
  Exporter(std::string folder, const ExportOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  Status begin() const {
    std::error_code failed;
    if (fs::exists(folder_, failed) && !fs::is_empty(folder_, failed))
      return bad_input("'{}' is there already", excerpt(folder_))
          .with_hint("-o names a new folder, or an empty one");
    return make_folders(folder_);
  }

  template <class AnyGraph>
  Status write(AnyGraph graph, std::string_view part, const std::string& name) {
    if (options_.published_only)
      for (std::string& column : keep_published(graph))
        if (std::ranges::find(exported_.lost, column) == exported_.lost.end())
          exported_.lost.push_back(std::move(column));
    const fs::path folder = part.empty() ? fs::path(folder_) : fs::path(folder_) / part;
    HONE_TRY(make_folders(folder));
    HONE_TRY(write_npz(folder / (name + ".npz"), arrays_of(graph)));
    ++exported_.files;
    return {};
  }

  const Exported& exported() const { return exported_; }

 private:
  const std::string folder_;
  const ExportOptions& options_;
  Exported exported_;
};

}  // namespace

Result<Exported> export_data(const KernelData& data, const std::string& folder,
                             const ExportOptions& options) {
  Exporter exporter(folder, options);
  if (options.split) HONE_TRY(check(*options.split, data));
  HONE_TRY(exporter.begin());
  const auto write = [&](const KernelSample& kernel, std::string_view part) {
    return exporter.write(tile_graph_of(kernel), part, hash_text(kernel.timed.facts->hash));
  };
  if (!options.split) {
    for (const KernelSample& kernel : data.kernels) HONE_TRY(write(kernel, ""));
    return exporter.exported();
  }
  for (Part each : kParts)
    for (const KernelSample& kernel : part(data, *options.split, each))
      HONE_TRY(write(kernel, folder_of(each)));
  return exporter.exported();
}

Result<Exported> export_data(std::span<const tpu::TuningModule> modules, const std::string& folder,
                             const ExportOptions& options) {
  // All first: a folder is not made for a file that is damaged.
  std::vector<std::pair<std::string, tpu::TileGraph>> tiles;
  std::vector<std::pair<std::string, tpu::LayoutGraph>> layouts;
  for (size_t i = 0; i < modules.size(); ++i) {
    const tpu::TuningModule& module = modules[i];
    const auto timed = std::ranges::find_if(module.runs, &tpu::TuningRun::is_timed);
    if (timed == module.runs.end()) continue;
    const std::string name = fmt::format("{:05}-{}", i, hash_text(module.fingerprint));
    const auto where = [&](Error error) { return std::move(error).within(name); };
    if (timed->has_tile) {
      Result<tpu::TileGraph> tile = tpu::tile_graph_of(module, options.features);
      if (!tile.ok()) return where(std::move(tile).error());
      tiles.emplace_back(name, *std::move(tile));
    } else {
      Result<tpu::LayoutGraph> layout = tpu::layout_graph_of(module, options.features);
      if (!layout.ok()) return where(std::move(layout).error());
      layouts.emplace_back(name, *std::move(layout));
    }
  }
  Exporter exporter(folder, options);
  HONE_TRY(exporter.begin());
  for (auto& [name, tile] : tiles) HONE_TRY(exporter.write(std::move(tile), "", name));
  for (auto& [name, layout] : layouts) HONE_TRY(exporter.write(std::move(layout), "", name));
  return exporter.exported();
}

}  // namespace hone
