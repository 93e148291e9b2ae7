#include "session/gpu_prices.h"

#include "base/file.h"
#include "cost/gpu_cost.h"

namespace hone {

Result<std::shared_ptr<const Cost>> learned_gpu_cost(const std::string& file,
                                                     const Target& target) {
  const std::string text = HONE_TRY(read_file(file, kMaxGpuModelText));
  Result<GpuModel> model = parse_gpu_model(text, target.name, file);
  if (!model.ok())
    return std::move(model).error().with_hint("'hone train cost' writes the file again");
  return std::shared_ptr<const Cost>(
      std::make_shared<GpuCost>(target, std::make_shared<const GpuModel>(*std::move(model))));
}

}  // namespace hone
