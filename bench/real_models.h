#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

// The models beside the repository, ../shared/models/real/NAME/model.onnx, with inputs.

namespace hone::bench {

struct RealModel {
  Graph graph;  // its sizes are those of the inputs
  std::vector<Tensor> inputs;
  std::filesystem::path file;
};

// Their names, in order; none without the folder.
std::vector<std::string> real_models();
Result<RealModel> load_real_model(std::string_view name);

}  // namespace hone::bench
