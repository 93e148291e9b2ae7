#include "cost/shipped_model.h"

namespace hone {

namespace {

// Networks that have gone on with fewer kernels of a processor are no better there than the common
// ones. Two of 31 models ran 1.1 times as long by those of 63 kernels of a Zen 5.
constexpr int64_t kLeastOwnKernels = 100;

}  // namespace

Result<KernelModel> shipped_model_on(const Target& target, const Prices* fitted,
                                     const ShippedModel& file) {
  KernelModel shipped = HONE_TRY(parse_kernel_model(file.file, file.name));
  for (ModelTarget& known : shipped.processors.targets)
    if (known.kernels < kLeastOwnKernels) known.core = 0;  // so it counts as one not seen
  return model_on(std::move(shipped), target, fitted);
}

}  // namespace hone
