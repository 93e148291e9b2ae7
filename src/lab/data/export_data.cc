#include "lab/data/export_data.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "lab/data/configured_graph.h"
#include "lab/data/layout_set.h"
#include "lab/data/tile_graph.h"
#include "log/hash_text.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The names of the parts in TpuGraphs.
std::string_view folder_of(Part part) { return part == Part::validation ? "valid" : name(part); }

class Exporter {
 public:
  Exporter(std::string folder, const DataExport& options)
      : folder_(std::move(folder)), options_(options) {}

  Status begin() const {
    std::error_code failed;
    if (fs::exists(folder_, failed) && !fs::is_empty(folder_, failed))
      return bad_input("'{}' is there already", excerpt(folder_))
          .with_hint("-o names a new folder, or an empty one");
    return make_folders(folder_);
  }

  template <class AnyGraph>
  Status write(AnyGraph graph, const fs::path& folder, const std::string& name) {
    keep_columns(graph);
    return write_arrays(arrays_of(graph), folder, name);
  }
  // TpuGraphs does not have what hone knows besides.
  Status write(LayoutFile file, const fs::path& folder, const std::string& name) {
    return write_own(file, file.layout, folder, name);
  }
  Status write(TileFile file, const fs::path& folder, const std::string& name) {
    return write_own(file, file.tile, folder, name);
  }

  const Exported& exported() const { return exported_; }

 private:
  static void add_new(std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  template <class AnyGraph>
  void keep_columns(AnyGraph& graph) {
    if (!options_.published_only) return;
    for (const std::string& column : keep_published(graph)) add_new(exported_.lost, column);
  }
  template <class File, class AnyGraph>
  Status write_own(const File& file, AnyGraph graph, const fs::path& folder,
                   const std::string& name) {
    const std::vector<NamedTensor> all = arrays_of(file);
    if (!options_.published_only) return write_arrays(all, folder, name);
    keep_columns(graph);
    const std::vector<NamedTensor> arrays = arrays_of(graph);
    for (const NamedTensor& each : all)
      if (!each.name.ends_with("_names") && each.name != "feature_version" &&
          std::ranges::find(arrays, each.name, &NamedTensor::name) == arrays.end())
        add_new(exported_.lost_arrays, each.name);
    return write_arrays(arrays, folder, name);
  }
  Status write_arrays(std::span<const NamedTensor> arrays, const fs::path& folder,
                      const std::string& name) {
    const fs::path within = fs::path(folder_) / folder;
    HONE_TRY(make_folders(within));
    HONE_TRY(write_npz(within / (name + ".npz"), arrays));
    ++exported_.files;
    return {};
  }

  const std::string folder_;
  const DataExport& options_;
  Exported exported_;
};

// A file of layouts and where it goes to.
struct PlacedLayouts {
  fs::path file, folder;
};

struct PlacedKernel {
  KernelSample kernel;
  std::string program;
  std::string_view folder;
};

// The first program of the kernel that is one of these.
std::string program_in(const KernelSample& kernel, std::span<const std::string> programs) {
  return *std::ranges::find_if(kernel.programs, [&](const std::string& program) {
    return std::ranges::binary_search(programs, program);
  });
}

// The part of a program, however its name is spelled; none: it is in none.
std::optional<Part> part_of(const ProgramSplit& split, std::string_view program) {
  for (Part each : kParts)
    for (const std::string& name : split.of(each))
      if (file_name_of(name) == file_name_of(program)) return each;
  return std::nullopt;
}

std::vector<PlacedLayouts> placed(std::span<const LayoutCounts> layouts,
                                  const std::optional<ProgramSplit>& split) {
  std::vector<PlacedLayouts> all;
  for (const LayoutCounts& each : layouts) {
    fs::path folder = fs::path("layout") / "hone" / each.sort;
    if (split) {
      const std::optional<Part> part = part_of(*split, each.program);
      if (!part) continue;
      folder /= folder_of(*part);
    }
    all.push_back({each.file, std::move(folder)});
  }
  return all;
}

std::vector<std::string> all_programs(const KernelData& data,
                                      std::span<const LayoutCounts> layouts) {
  std::vector<std::string> programs = programs_of(data);
  for (const LayoutCounts& each : layouts) programs.push_back(each.program);
  std::ranges::sort(programs);
  programs.erase(std::ranges::unique(programs).begin(), programs.end());
  return programs;
}

}  // namespace

Result<Exported> export_data(const DataSet& set, const std::string& folder,
                             const DataExport& options) {
  const KernelData data = HONE_TRY(load_kernel_data(set));
  const std::vector<LayoutCounts> counts = HONE_TRY(count_layouts(set));
  if (options.split) HONE_TRY(check(*options.split, all_programs(data, counts)));
  const std::vector<PlacedLayouts> layouts = placed(counts, options.split);
  std::vector<PlacedKernel> kernels;
  if (!options.split)
    for (const KernelSample& kernel : data.kernels)
      kernels.push_back({kernel, kernel.programs[0], ""});
  else
    for (Part each : kParts)
      for (KernelSample& kernel : part(data, *options.split, each)) {
        std::string program = program_in(kernel, options.split->of(each));
        kernels.push_back({std::move(kernel), std::move(program), folder_of(each)});
      }
  if (kernels.empty() && layouts.empty())
    return bad_input("there is nothing to export: {}",
                     options.split ? "the split names no program"
                                   : "no kernel has enough times, and there are no layouts")
        .within(set.folder());
  Exporter exporter(folder, options);
  HONE_TRY(exporter.begin());
  const uint64_t target = fingerprint(set.info().target);
  for (const PlacedKernel& each : kernels)
    HONE_TRY(exporter.write(TileFile{tile_graph_of(each.kernel), each.program, target}, each.folder,
                            hash_text(each.kernel.timed.facts->hash)));
  for (const PlacedLayouts& each : layouts)
    HONE_TRY(exporter.write(HONE_TRY(read_layouts_of(set, each.file)), each.folder,
                            each.file.stem().native()));
  return exporter.exported();
}

Result<Exported> export_data(const fs::path& graphs, const std::string& folder,
                             const DataExport& options) {
  std::error_code failed;
  const bool is_folder = fs::is_directory(graphs, failed);
  const std::vector<fs::path> files =
      is_folder ? HONE_TRY(graph_files(graphs)) : std::vector<fs::path>{graphs};
  Exporter exporter(folder, options);
  HONE_TRY(exporter.begin());
  for (const fs::path& file : files) {
    const fs::path within = is_folder ? file.parent_path().lexically_relative(graphs) : "";
    const std::string name = file.stem().native();
    const auto copy = [&]() -> Status {
      const std::vector<NamedTensor> arrays = HONE_TRY(tpu::read_arrays(file));
      const bool has_tiles = HONE_TRY(is_tile(arrays));
      if (has_tiles) return exporter.write(HONE_TRY(tile_file_of(arrays)), within, name);
      return exporter.write(HONE_TRY(layout_file_of(arrays)), within, name);
    };
    if (Status status = copy(); !status.ok())
      return std::move(status).error().within(file.native());
  }
  return exporter.exported();
}

Result<Exported> export_data(std::span<const tpu::TuningModule> modules, const std::string& folder,
                             const DataExport& options) {
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
  if (tiles.empty() && layouts.empty())
    return bad_input("there are no timed runs in the {} modules of the file", modules.size());
  Exporter exporter(folder, options);
  HONE_TRY(exporter.begin());
  for (auto& [name, tile] : tiles) HONE_TRY(exporter.write(std::move(tile), "", name));
  for (auto& [name, layout] : layouts) HONE_TRY(exporter.write(std::move(layout), "", name));
  return exporter.exported();
}

}  // namespace hone
