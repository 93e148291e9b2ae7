#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/onnx/labels.h"
#include "front/onnx/limits.h"
#include "tensor/tensor.h"

namespace hone {

struct OnnxChecks;

// How a front end reads a model.
struct ImportOptions {
  // Dims of the file by their names: batch -> 4. A dim without a name goes by the name of the
  // symbol that stands for it.
  std::map<std::string, int64_t, std::less<>> dims = {};
  std::map<std::string, Ints, std::less<>> shapes = {};  // of inputs
  bool override_shapes = false;  // those given hold even if the file has other numbers
  // Inputs that become constants.
  std::map<std::string, Tensor, std::less<>> constants = {};
  // Elements that inputs will have in every run. They stay inputs, and what one integer or bool
  // decides is decided now: an If becomes the branch that it takes.
  std::map<std::string, Tensor, std::less<>> known = {};
  // Dims of inputs that become symbols even if the file has numbers there: a name for each dim, ""
  // for one that stays. Equal names are one symbol.
  std::map<std::string, std::vector<std::string>, std::less<>> symbols = {};
  OnnxLimits limits = {};  // of ONNX files
  // Gets a line for each thing that was read otherwise than the file says.
  std::function<void(std::string_view)> notice = {};
  // Gets the file's nodes by the values that they make: "conv1_output" -> "conv1". A node without a
  // name goes by its first value.
  std::map<std::string, std::string, std::less<>>* layers = nullptr;
  OnnxLabels* labels = nullptr;                  // gets what numbers of the file stand for
  std::shared_ptr<OnnxChecks> checks = nullptr;  // null: none are made
};

// How it writes one.
struct ExportOptions {
  int opset = 21;  // of ONNX: 17 to 21; with `primitives` from 13 on
  // Composites are spelled out in ops that are older than most of them, as exporters did.
  bool primitives = false;
  // For ONNX: weights go to FILE.data beside the file. If the file would exceed 2 GB, they go there
  // anyway.
  bool external_data = false;
};

}  // namespace hone
