#pragma once

#include <filesystem>
#include <vector>

#include "base/error.h"

// ONNX Runtime, the rival, in a process of its own: bench/compat/setup.sh installs it for node.

namespace hone::bench {

// The root of the repository; benchmarks are in build/PRESET.
std::filesystem::path root();

// Whether setup.sh, or anyone else, has installed it.
bool has_onnx_runtime();

struct OnnxRuntimeOptions {
  int64_t threads = 1;
  double seconds = 0;  // to go on running for
};

// Runs the model on folder/in0.npy, in1.npy, ... and writes out0.npy, ... there. Returns what each
// of the runs after the first took in seconds: three at least if `seconds` is not 0.
Result<std::vector<double>> run_onnx_runtime(const std::filesystem::path& model,
                                             const std::filesystem::path& folder,
                                             const OnnxRuntimeOptions& options = {});

}  // namespace hone::bench
