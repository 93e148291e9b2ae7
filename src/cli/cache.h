#pragma once

#include <memory>

#include "base/error.h"
#include "log/kernel_cache.h"

namespace hone::cli {

class Arguments;

// Of a command with the option --cache: that folder, or hone in the user's folder for caches.
Result<std::unique_ptr<KernelCache>> open_cache(const Arguments& arguments);

}  // namespace hone::cli
