#include "rewrite/passes.h"

#include <chrono>

#include "base/text.h"

namespace hone {
namespace {

constexpr Pass kPasses[] = {
#define HONE_PASS(function, name, use, promise) {name, PassUse::use, promise, &function},
#include "rewrite/passes.def"
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

Result<std::vector<Pass>> parse_passes(std::string_view names) {
  std::vector<Pass> chosen;
  for (std::string_view part : split(names, ',')) {
    std::string_view wanted = trim(part);
    if (wanted.empty()) {
      return names.ends_with(',') ? usage_error("the list of passes ends in a comma")
                                  : usage_error("the list of passes has an empty name");
    }
    const Pass* found = nullptr;
    for (const Pass& pass : kPasses)
      if (pass.name == wanted) found = &pass;
    if (found == nullptr) {
      std::vector<std::string_view> known;
      for (const Pass& pass : kPasses) known.push_back(pass.name);
      return usage_error("there is no pass '{}'", escape(wanted.substr(0, 60)))
          .with_hint(fmt::format("the passes are {}", join(known, ", ")));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

Result<Graph> run_passes(const Graph& graph, std::span<const Pass> passes,
                         const PassOptions& options) {
  Graph current = graph;
  for (const Pass& pass : passes) {
    auto start = std::chrono::steady_clock::now();
    Result<Graph> next = pass.run(current);
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (!next.ok()) return std::move(next).error().within(fmt::format("pass '{}'", pass.name));
    if (options.verify_each) {
      // The input was good, so a bad output is a fault of the pass, not of the user.
      Status good = verify(*next);
      HONE_CHECK(good.ok(), "pass '{}' broke the graph: {}", pass.name, good.error().to_string());
    }
    if (options.observer) {
      PassReport report{pass.name, elapsed.count(), current.node_count(), next->node_count(),
                        current.node_count() != next->node_count() ||
                            structural_hash(current) != structural_hash(*next)};
      options.observer(report, *next);
    }
    current = std::move(*next);
  }
  return current;
}

}  // namespace hone
