#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/tpu/features.h"
#include "learn/kernel_data.h"

// Data in the schema of TpuGraphs, an .npz file for each kernel, program or module.

namespace hone {

struct DataExport {
  bool published_only = false;                            // no columns of hone
  std::optional<ProgramSplit> split = {};                 // folders train, valid and test
  tpu::FeatureSet features = tpu::FeatureSet::published;  // of measurements of TpuGraphs
};

struct Exported {
  size_t files = 0;
  std::vector<std::string> lost = {};         // columns, each once
  std::vector<std::string> lost_arrays = {};  // each once
};

// Into a folder that is not there yet, or is empty. Errors: nothing to export.
//
// A data set: a file for each kernel, and its files of layouts in folders as those of TpuGraphs,
// layout/hone/random and layout/hone/default.
Result<Exported> export_data(const DataSet& set, const std::string& folder,
                             const DataExport& options);
// An .npz file, or a folder of them, which are where they were.
Result<Exported> export_data(const std::filesystem::path& graphs, const std::string& folder,
                             const DataExport& options);
// Measurements of TpuGraphs: modules with tiles or with layouts. Modules without timed runs are
// left out.
Result<Exported> export_data(std::span<const tpu::TuningModule> modules, const std::string& folder,
                             const DataExport& options);

}  // namespace hone
