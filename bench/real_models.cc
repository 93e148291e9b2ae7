#include "bench/real_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/onnx_runtime.h"
#include "formats/npy.h"
#include "front/onnx/onnx.h"

namespace hone::bench {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return root() / "../shared/models/real"; }

}  // namespace

std::vector<std::string> real_models() {
  std::vector<std::string> names;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), absent))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

Result<RealModel> load_real_model(std::string_view name) {
  const fs::path file = folder() / name / "model.onnx";
  const Model model = HONE_TRY(load_onnx(file));
  const Graph* const graph = single_graph(model);
  if (graph == nullptr) return unsupported("the model '{}' has several segments", name);
  std::vector<Tensor> inputs;
  std::vector<Type> types;
  for (size_t i = 0; i < graph->inputs().size(); ++i) {
    inputs.push_back(HONE_TRY(read_npy(folder() / name / fmt::format("input_{}.npy", i))));
    types.push_back(inputs.back().type());
  }
  const Bindings sizes = HONE_TRY(bind_inputs(*graph, types));
  return RealModel{HONE_TRY(specialize(*graph, sizes)), std::move(inputs), file};
}

}  // namespace hone::bench
