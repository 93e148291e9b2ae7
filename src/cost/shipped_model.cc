#include "cost/shipped_model.h"

namespace hone {

Result<KernelModel> shipped_model_on(const Target& target, const Prices* fitted) {
  const ShippedModel& shipped = shipped_model_file();
  return model_on(HONE_TRY(parse_kernel_model(shipped.file, shipped.name)), target, fitted);
}

}  // namespace hone
