#pragma once

#include <memory>
#include <string>

#include "compile/compilation.h"

namespace hone {

// The result of Compilation(graph, ...).executable(), made once: loaded from the cache, or made and
// kept there. For graphs that each process makes anew, as training steps: what is found needs no
// preparation, no plan and no lowering. Not kept: drawn plans, those that somebody else may know a
// better one of, and graphs with more than a MiB of constants.
Result<std::shared_ptr<const Executable>> cached_executable(const Graph& graph,
                                                            const Target& target,
                                                            const CompileOptions& options);

}  // namespace hone
