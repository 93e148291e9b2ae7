#include "rewrite/prepare.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

Status check_can_leave_out(std::string_view pass) {
  std::vector<std::string_view> optional;
  const Pass* found = nullptr;
  for (const Pass& one : all_passes()) {
    if (one.name == pass) found = &one;
    if (one.use == PassUse::optional) optional.push_back(one.name);
  }
  if (found != nullptr && found->use == PassUse::optional) return {};
  const std::string hint =
      fmt::format("the passes that can be left out are {}", join(optional, ", "));
  if (found == nullptr) return usage_error("there is no pass '{}'", excerpt(pass)).with_hint(hint);
  return usage_error("the pass '{}' {}", pass,
                     found->use == PassUse::required
                         ? "is required: plans are for graphs that it made"
                         : "is not one of those that prepare a graph")
      .with_hint(hint);
}

PassOptions passes_of_prepare() {
#ifdef NDEBUG
  return {.verify_each = false};
#else
  return {.verify_each = true};
#endif
}

Result<Graph> prepare(const Graph& graph, const PrepareOptions& options) {
  for (const std::string& name : options.without) HONE_TRY(check_can_leave_out(name));
  std::vector<Pass> passes;
  const auto add = [&](std::string_view name) {
    passes.push_back(*std::ranges::find(all_passes(), name, &Pass::name));
  };
  for (std::string_view name : kPreparation) {
    if (name == "names" && options.is_for_gpu) add("pieces");
    if (std::ranges::find(options.without, name) == options.without.end()) add(name);
  }
  if (options.flushes_denormals) add("flush");
  return run_passes(graph, passes, options.passes);
}

}  // namespace hone
