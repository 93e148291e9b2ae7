#pragma once

#include <string>

#include "base/error.h"

// Checks before the work that its results can be written.

namespace hone::cli {

class Arguments;

// Checks all options of the command that name its outputs.
Status check_outputs(const Arguments& arguments);

// Checks a file. "" is none, "-" the standard output.
Status check_writable(const std::string& path);
// Checks a file or a folder, which is made with its missing parents.
Status check_writable_path(const std::string& path);

}  // namespace hone::cli
