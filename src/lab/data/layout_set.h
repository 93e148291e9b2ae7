#pragma once

#include <string>
#include <vector>

#include "lab/data/layout_file.h"
#include "learn/data_set.h"

// The layout files of data sets.

namespace hone {

// Sorted; none: the set has no layouts.
Result<std::vector<std::filesystem::path>> layout_files(const std::string& folder);

// One of them, with its program and target, which files of before do not name. Errors: it is
// damaged, or of another target than the set.
Result<LayoutFile> read_layouts_of(const DataSet& set, const std::filesystem::path& path);

// The counts of a file.
struct LayoutCounts {
  std::filesystem::path file = {};
  std::string program, sort, priced_by;
  size_t nodes = 0, configurable = 0;  // of the graph
  size_t assignments = 0, whole = 0;   // that were run whole
  double known = 0;                    // the measured share of the times, on average
  // For composed times, over whole runs: the mean of |composed / whole - 1|, and the middle ratio.
  std::optional<double> error = {}, ratio = {};
  bool is_done = false;  // as far as the build that wrote it was asked
};
// Errors: a file that is damaged, or of another target than the set.
Result<std::vector<LayoutCounts>> count_layouts(const DataSet& set);

// Puts the files of another set of this target into the set. If two have one name, the one with
// more whole runs stays; if these are equal, that of which more was measured. Returns how many it
// took.
Result<int64_t> merge_layouts(const DataSet& into, const DataSet& from);

}  // namespace hone
