#include "tune/kernel_uses.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>

#include "cost/program_price.h"
#include "program/frame.h"

namespace hone {
namespace {

using program::FrameRef;

// How often a run of its frame runs each frame of the command. Each branch counts.
std::vector<std::pair<FrameRef, double>> inner_runs(const program::Command& command) {
  if (const auto* const call = std::get_if<program::Call>(&command.kind)) return {{call->frame, 1}};
  if (const auto* const branch = std::get_if<program::Branch>(&command.kind))
    return {{branch->on_true, 1}, {branch->on_false, 1}};
  if (const auto* const loop = std::get_if<program::Loop>(&command.kind))
    return {{loop->test, kAssumedTrips + 1}, {loop->body, kAssumedTrips}};
  if (const auto* const scan = std::get_if<program::Scan>(&command.kind))
    return {{scan->body, static_cast<double>(scan->trips.range().high)}};
  return {};
}

}  // namespace

std::vector<KernelUse> kernel_uses(const Program& program, const Cost& cost) {
  std::map<uint64_t, KernelUse> uses;
  std::unordered_map<const program::Frame*, double> runs = {{program.main.get(), 1}};
  // Frames come after those that run them.
  for (const FrameRef& frame : program::all_frames(program.main) | std::views::reverse)
    for (const program::Command& command : frame->commands) {
      for (const auto& [inner, times] : inner_runs(command))
        runs[inner.get()] += times * runs[frame.get()];
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
      use.weight +=
          runs[frame.get()] * cost.kernel(use.facts, program.threads)->seconds(*kernel.schedule);
    }
  std::vector<KernelUse> sorted;
  for (auto& [hash, use] : uses) sorted.push_back(std::move(use));
  std::ranges::sort(sorted, std::greater(), &KernelUse::weight);
  return sorted;
}

}  // namespace hone
