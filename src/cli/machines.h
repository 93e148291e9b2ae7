#pragma once

#include <string>

#include "target/system.h"
#include "target/target.h"

// Machines named on the command line.

namespace hone::cli {

// A target file, or a GPU that has a name: "sm_90"; "host" or nothing: this machine.
Result<Target> load_target(const std::string& file);

// A system file, or a preset such as "ring:8" whose devices are the target.
Result<System> load_system(const std::string& text, const std::string& target_file);

}  // namespace hone::cli
