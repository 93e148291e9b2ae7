#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "log/log.h"

namespace hone::cli {

class Arguments;
class Console;

// Of a command with the option --log: that file, that of the environment, or the user's own.
Result<std::string> log_path(const Arguments& arguments);
// For reading and writing. If it had to be salvaged, that is said.
Result<std::unique_ptr<Log>> open_log(const Arguments& arguments, Console& console);
// The same of a command with --no-log, too; none: that is given.
Result<std::unique_ptr<Log>> wanted_log(const Arguments& arguments, Console& console);
// For reading alone; none: there is no file yet.
Result<std::unique_ptr<Log>> find_log(const Arguments& arguments);

// What was found is told all the same; the log does not have all of it.
Error not_kept(const Error& why, std::string_view hint);

void tell_salvaged(const Salvaged& salvaged, const std::string& path, Console& console);

}  // namespace hone::cli
