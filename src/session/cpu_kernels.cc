#include "session/cpu_kernels.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

Result<GpuShare> gpu_share(Compilation& compilation) {
  GpuShare share;
  if (!compilation.target().gpu) return share;
  HONE_TRY(compilation.kernels());
  const Program& program = *HONE_TRY(compilation.program());
  share.kernels = program.kernels.size();
  const std::span<const std::string> reasons = compilation.reasons_for_cpu();
  for (size_t k = 0; k < reasons.size(); ++k)
    if (!reasons[k].empty()) share.on_cpu.push_back({program.kernels[k].tiles.name, reasons[k]});
  return share;
}

std::string gpu_share_text(const GpuShare& share, size_t most) {
  if (share.on_cpu.empty())
    return share.kernels == 1 ? "the kernel runs on the GPU\n"
                              : fmt::format("all {} kernels run on the GPU\n", share.kernels);
  std::string text =
      fmt::format("{} of {} kernels run on the CPU beside the GPU, with copies there and back:\n",
                  share.on_cpu.size(), share.kernels);
  const size_t shown = std::min(most, share.on_cpu.size());
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("  {}: {}\n", excerpt(share.on_cpu[i].name), excerpt(share.on_cpu[i].why));
  if (shown < share.on_cpu.size())
    text += fmt::format("  and {} more\n", share.on_cpu.size() - shown);
  return text;
}

}  // namespace hone
