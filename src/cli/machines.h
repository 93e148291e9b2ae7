#pragma once

#include <optional>
#include <string>

#include "target/system.h"
#include "target/target.h"

// Machines named on the command line.

namespace hone::cli {

// The GPU that has this name, "sm_90". None: it is the name of a file. An error: it is neither.
Result<std::optional<Target>> named_gpu(const std::string& text);

// A target file, or a GPU that has a name: "sm_90"; "host" or nothing: this machine.
Result<Target> load_target(const std::string& file);

// A system file, or a preset such as "ring:8" whose devices are the target.
Result<System> load_system(const std::string& text, const std::string& target_file);

}  // namespace hone::cli
