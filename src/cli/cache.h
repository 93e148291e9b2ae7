#pragma once

#include <memory>

#include "base/error.h"
#include "log/compile_cache.h"

namespace hone::cli {

class Arguments;

// Of a command with the option --cache: that folder, or hone in the user's folder for caches.
Result<std::unique_ptr<CompileCache>> open_cache(const Arguments& arguments);

}  // namespace hone::cli
