#include "tune/kernel_uses.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>

#include "program/frame.h"
#include "program/tasks.h"

namespace hone {
namespace {

// Inputs of a launch that are constants of the program.
std::vector<bool> constant_inputs(const program::Frame& frame, const program::Launch& launch) {
  std::vector<bool> is_constant;
  for (program::BufferId input : launch.inputs)
    is_constant.push_back(frame.buffers[program::base_of(frame, input)].role ==
                          program::Role::constant);
  return is_constant;
}

}  // namespace

std::vector<KernelUse> kernel_uses(const Program& program, const Cost& cost) {
  const std::unordered_map<uint64_t, double> launches = launches_of(tasks_of(program));
  std::map<uint64_t, KernelUse> uses;
  // Frames come after those that run them; the first launch of a kernel says what is constant.
  for (const program::FrameRef& frame : program::all_frames(program.main) | std::views::reverse)
    for (const program::Command& command : frame->commands) {
      const auto* const launch = std::get_if<program::Launch>(&command.kind);
      if (launch == nullptr) continue;
      const program::Kernel& kernel = program.kernels[launch->kernel];
      if (kernel.body == nullptr || kernel.schedule->algorithm() == Algorithm::generic) continue;
      const uint64_t hash = task_kernel(kernel);
      if (uses.contains(hash)) continue;
      KernelUse use = {.hash = hash,
                       .facts = std::make_shared<const KernelFacts>(*kernel.body, hash),
                       .schedule = *kernel.schedule,
                       .name = kernel.tiles.name,
                       .is_constant = constant_inputs(*frame, *launch)};
      use.weight =
          launches.at(hash) * cost.kernel(use.facts, program.threads)->seconds(use.schedule);
      uses.emplace(hash, std::move(use));
    }
  std::vector<KernelUse> sorted;
  for (auto& [hash, use] : uses) sorted.push_back(std::move(use));
  std::ranges::sort(sorted, std::greater(), &KernelUse::weight);
  return sorted;
}

}  // namespace hone
