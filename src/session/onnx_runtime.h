#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "tensor/tensor.h"

// ONNX Runtime, the rival, if node or Python has it. Each block of its runs is a process of its
// own, whose threads end with it: they go on spinning after a run.

namespace hone {

struct OnnxRuntime {
  enum class Host : uint8_t { node, python };
  Host host = Host::node;
  std::string modules;  // node's folder of modules; empty: where node looks
  std::string version;

  std::string name() const;  // "ONNX Runtime 1.30.0 (node)"
};

// An error says how to get it.
Result<OnnxRuntime> find_onnx_runtime(const std::string& modules = "",
                                      const CancelToken* cancel = nullptr);

struct OnnxRuntimeBlock {
  int64_t threads = 1;
  double seconds = 0;           // to go on running for, after the runs that do not count
  bool writes_outputs = false;  // out0.npy, out1.npy, ... into the folder
};

// Writes in0.npy, in1.npy, ...: the inputs of runs.
Status write_onnx_runtime_inputs(const std::filesystem::path& folder,
                                 const std::vector<Tensor>& inputs);
// Runs the model on these, and returns what each of the runs that count took in seconds: three at
// least if `seconds` is not 0, else none.
Result<std::vector<double>> run_onnx_runtime(const OnnxRuntime& runtime,
                                             const std::filesystem::path& model,
                                             const std::filesystem::path& folder,
                                             const OnnxRuntimeBlock& block = {},
                                             const CancelToken* cancel = nullptr);

}  // namespace hone
