#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "tensor/tensor.h"

// The rivals: other engines that run a model of ONNX, if Python has them (ONNX Runtime: or node).
// Each block of their runs is a process of its own, whose threads end with it: they go on spinning
// after a run.

namespace hone {

enum class Rival : uint8_t { onnxruntime, openvino, torch, inductor };

struct RivalRow {
  Rival rival;
  std::string_view word;      // of the command line
  std::string_view name;      // "OpenVINO"
  std::string_view packages;  // that pip installs
};
std::span<const RivalRow> rival_rows();
const RivalRow& row_of(Rival rival);

// The programs that are asked for them.
struct RivalHosts {
  std::string python = "python3";
  bool asks_node = true;
  std::string modules = "";  // node's folder of modules; empty: where node looks
};

// A rival that is installed.
struct RivalEngine {
  enum class Host : uint8_t { node, python };
  Rival rival = Rival::onnxruntime;
  Host host = Host::node;
  RivalHosts hosts = {};
  std::string version = {};

  std::string name() const;  // "ONNX Runtime 1.30.0 (node)"
};

// An error says how to get it.
Result<RivalEngine> find_rival(Rival rival, const RivalHosts& hosts = {},
                               const CancelToken* cancel = nullptr);

struct RivalBlock {
  int64_t threads = 1;
  double seconds = 0;           // to go on running for, after the runs that do not count
  bool writes_outputs = false;  // out0.npy, out1.npy, ... into the folder
};

// Writes in0.npy, in1.npy, ...: the inputs of runs.
Status write_rival_inputs(const std::filesystem::path& folder, const std::vector<Tensor>& inputs);
// Runs the model on these, and returns what each of the runs that count took in seconds: three at
// least if `seconds` is not 0, else none. PyTorch runs the program of torch.export in MODEL.pt2
// beside MODEL.onnx, if there is one, and else what onnx2torch makes of the model.
Result<std::vector<double>> run_rival(const RivalEngine& engine, const std::filesystem::path& model,
                                      const std::filesystem::path& folder,
                                      const RivalBlock& block = {},
                                      const CancelToken* cancel = nullptr);

}  // namespace hone
