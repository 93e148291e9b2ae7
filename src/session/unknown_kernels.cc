#include "session/unknown_kernels.h"

#include <set>

#include "cost/cost.h"
#include "plan/planned_kernels.h"

namespace hone {

Result<std::string> unknown_kernels_text(Compilation& compilation) {
  const Cost& cost = compilation.cost();
  if (cost.learned() == nullptr) return std::string();
  const Graph& graph = *HONE_TRY(compilation.graph());
  const Plan& plan = *HONE_TRY(compilation.plan());
  std::set<uint64_t> all, unknown;
  for (const auto& [step, kernel] : HONE_TRY(planned_kernels(graph, plan))) {
    if (!all.insert(kernel.hash).second) continue;
    const auto facts = std::make_shared<const KernelFacts>(kernel.body, kernel.hash);
    const auto priced = cost.kernel(facts, plan.threads.value_or(1));
    if (priced->source(*kernel.schedule) == "analytic") unknown.insert(kernel.hash);
  }
  if (unknown.empty()) return std::string();
  return fmt::format(
      "{} of {} different kernels have the analytic price alone (hone explain --why)",
      unknown.size(), all.size());
}

}  // namespace hone
