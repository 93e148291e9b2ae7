#include "cost/shipped_models.h"

#include "target/fingerprint.h"

namespace hone {

Result<std::optional<KernelModel>> shipped_model_of(const Target& target) {
  for (const ShippedModel& shipped : shipped_models()) {
    KernelModel model = HONE_TRY(parse_kernel_model(shipped.file, shipped.name));
    if (model.core == core_fingerprint(target)) return std::optional(std::move(model));
  }
  return std::optional<KernelModel>();
}

}  // namespace hone
