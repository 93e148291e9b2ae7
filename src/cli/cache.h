#pragma once

#include <memory>

#include "base/error.h"
#include "cache/compile_cache.h"

namespace hone::cli {

class Arguments;

// The cache of a command with the option --cache: that folder, or hone in the user's folder for
// caches.
Result<std::unique_ptr<CompileCache>> open_cache(const Arguments& arguments);

// Checks that its folder exists, or can be made, and takes files: tries it.
Status check_entries_fit(const CompileCache& cache);

}  // namespace hone::cli
