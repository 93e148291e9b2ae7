#include "cost/shipped_models.h"

#include "target/fingerprint.h"

namespace hone {

const ShippedModel* find_shipped_model(std::string_view name) {
  for (const ShippedModel& shipped : shipped_models())
    if (shipped.name.substr(0, shipped.name.rfind('.')) == name) return &shipped;
  return nullptr;
}

Result<std::optional<KernelModel>> shipped_model_of(const Target& target) {
  for (const ShippedModel& shipped : shipped_models()) {
    KernelModel model = HONE_TRY(parse_kernel_model(shipped.file, shipped.name));
    if (model.core == core_fingerprint(target)) return std::optional(std::move(model));
  }
  return std::optional<KernelModel>();
}

}  // namespace hone
