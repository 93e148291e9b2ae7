#include "lab/data/layout_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/file.h"
#include "base/text.h"
#include "lab/data/configured_graph.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

LayoutCounts counts_of(const LayoutFile& file, const fs::path& path) {
  LayoutCounts counts = {.file = path,
                         .program = file.program,
                         .sort = std::string(sort_of_file(path)),
                         .priced_by = file.priced_by,
                         .nodes = file.layout.graph.opcodes.size(),
                         .configurable = file.layout.config_nodes.size(),
                         .assignments = file.layout.runtimes.size()};
  counts.is_done = file.progress && file.progress->has_kernels;
  const std::vector<float>& known = file.times.known;
  if (!known.empty())
    counts.known =
        std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < file.times.whole.size(); ++i)
    if (const auto whole = static_cast<double>(file.times.whole[i]); whole > 0)
      ratios.push_back(static_cast<double>(file.layout.runtimes[i]) / whole);
  counts.whole = ratios.size();
  if (ratios.empty()) return counts;
  double error = 0;
  for (double each : ratios) error += std::abs(each - 1);
  counts.error = error / static_cast<double>(ratios.size());
  std::ranges::sort(ratios);
  counts.ratio = ratios[ratios.size() / 2];
  return counts;
}

}  // namespace

Result<LayoutFile> read_layouts_of(const DataSet& set, const fs::path& path) {
  LayoutFile file = HONE_TRY(read_layout_file(path));
  const uint64_t target = fingerprint(set.info().target);
  if (file.target == 0) file.target = target;
  if (Status same = check_target(target, file.target); !same.ok())
    return std::move(same).error().within(path.native());
  if (file.program.empty()) file.program = program_of_file(path);
  return file;
}

Result<std::vector<fs::path>> layout_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  const fs::path layouts = fs::path(folder) / "layout";
  if (!fs::exists(layouts, failed)) return files;
  for (fs::directory_iterator at(layouts, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".npz") files.push_back(at->path());
  if (failed) return bad_input("'{}' cannot be listed", excerpt(layouts.native()));
  std::ranges::sort(files);
  return files;
}

Result<std::vector<LayoutCounts>> count_layouts(const DataSet& set) {
  std::vector<LayoutCounts> all;
  for (const fs::path& path : HONE_TRY(layout_files(set.folder())))
    all.push_back(counts_of(HONE_TRY(read_layouts_of(set, path)), path));
  return all;
}

Result<int64_t> merge_layouts(const DataSet& into, const DataSet& from) {
  int64_t taken = 0;
  for (const fs::path& path : HONE_TRY(layout_files(from.folder()))) {
    const LayoutFile file = HONE_TRY(read_layouts_of(from, path));
    const fs::path place = fs::path(into.folder()) / "layout" / path.filename();
    std::error_code failed;
    if (fs::exists(place, failed)) {
      const LayoutCounts here = counts_of(HONE_TRY(read_layouts_of(into, place)), place);
      const LayoutCounts there = counts_of(file, path);
      if (std::pair(here.whole, here.known) >= std::pair(there.whole, there.known)) continue;
    }
    HONE_TRY(make_folders(place.parent_path().native()));
    HONE_TRY(write_npz(place, arrays_of(file)));
    ++taken;
  }
  return taken;
}

}  // namespace hone
