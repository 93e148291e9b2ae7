#pragma once

#include <string>

#include "base/error.h"

// What is to be written can be: found before the work instead of after it.

namespace hone::cli {

class Arguments;

// Of all options of the command that name what it writes.
Status check_outputs(const Arguments& arguments);

// Of a file. "" is none, "-" the standard output.
Status check_writable(const std::string& path);
// Of a file or a folder, which is made with its missing parents.
Status check_writable_path(const std::string& path);

}  // namespace hone::cli
