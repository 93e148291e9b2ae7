#include "tune/kernel_uses.h"

#include <algorithm>
#include <map>

#include "program/frame.h"

namespace hone {

std::vector<KernelUse> kernel_uses(const Program& program, const Cost& cost) {
  std::map<uint64_t, KernelUse> uses;
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands) {
      const auto* const launch = std::get_if<program::Launch>(&command.kind);
      if (launch == nullptr) continue;
      const program::Kernel& kernel = program.kernels[launch->kernel];
      if (kernel.body == nullptr || kernel.schedule->algorithm() == Algorithm::generic) continue;
      const uint64_t hash = kernel_hash(*kernel.body);
      KernelUse& use = uses[hash];
      if (use.facts == nullptr) {
        use.hash = hash;
        use.facts = std::make_shared<const KernelFacts>(*kernel.body, hash);
        use.schedule = *kernel.schedule;
        use.name = kernel.tiles.name;
        for (program::BufferId input : launch->inputs)
          use.is_constant.push_back(frame->buffers[program::base_of(*frame, input)].role ==
                                    program::Role::constant);
      }
      use.weight += cost.kernel(use.facts, program.threads)->seconds(*kernel.schedule);
    }
  std::vector<KernelUse> sorted;
  for (auto& [hash, use] : uses) sorted.push_back(std::move(use));
  std::ranges::sort(sorted, std::greater(), &KernelUse::weight);
  return sorted;
}

}  // namespace hone
