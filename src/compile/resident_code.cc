#include "compile/resident_code.h"

#include "compile/gpu_kernels.h"

namespace hone {

Result<std::shared_ptr<const CudaExecutable>> resident_code(Compilation& code,
                                                            std::vector<uint32_t> resident,
                                                            const CompileOptions& options) {
  const Image& image = *HONE_TRY(code.image());
  const std::span<const GpuKernel> kernels = code.gpu_kernels();
  return CudaExecutable::load({image, {kernels.begin(), kernels.end()}}, options.device,
                              {.cubins = cubin_store(options.cache),
                               .team = options.team,
                               .resident = std::move(resident)});
}

}  // namespace hone
