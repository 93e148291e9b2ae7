#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// Graph-to-graph passes: one function, one file, one test, one row of passes.def. A pass takes any
// verified graph and returns a verified one that computes the same; it treats regions like graphs.

namespace hone {

#define HONE_PASS(function, name, use, promise) Result<Graph> function(const Graph& graph);
#include "rewrite/passes.def"

// Who runs a pass.
enum class PassUse : uint8_t {
  required,  // prepare(), always
  optional,  // prepare(), unless it is told to leave the pass out
  request,   // those who ask for it by name, such as `hone opt`
};

struct Pass {
  std::string_view name;
  PassUse use;
  std::string_view promise;
  Result<Graph> (*run)(const Graph&);
};

std::span<const Pass> all_passes();
// "fold,dce": in the order given. Unknown names come with a hint.
Result<std::vector<Pass>> parse_passes(std::string_view names);

struct PassReport {
  std::string_view name;
  double seconds;
  size_t nodes_before;
  size_t nodes_after;
  bool changed;  // by structural hash or node count
};

struct PassOptions {
  bool verify_each = true;  // verify the graph after every pass
  // Sees each pass's report and result as it is done.
  std::function<void(const PassReport&, const Graph& after)> observer = {};
};

// Runs the passes in order. Every pass is timed, reported and followed by the verifier.
Result<Graph> run_passes(const Graph& graph, std::span<const Pass> passes,
                         const PassOptions& options = {});

}  // namespace hone
