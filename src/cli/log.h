#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "log/log.h"

namespace hone::cli {

class Arguments;
class Console;

// The path for a command with the option --log: that file, that of the environment, or the user's
// own.
Result<std::string> log_path(const Arguments& arguments);
// For reading and writing. If it had to be salvaged, that is said.
Result<std::unique_ptr<Log>> open_log(const Arguments& arguments, Console& console);
// The log of work that goes on without one.
struct WantedLog {
  std::unique_ptr<Log> log = nullptr;   // none: --no-log is given, or nothing is there
  std::optional<Error> unwritten = {};  // why what is found is not kept there; the user knows
};
// If it cannot be written that is said, and it is read alone as far as that goes.
Result<WantedLog> wanted_log(const Arguments& arguments, Console& console);
// Says that the log could not be written later on, unless the user knows.
void tell_unwritten(const Error& why, WantedLog& wanted, Console& console);
// For reading alone; none: there is no file yet. If --log names it, it is there.
Result<std::unique_ptr<Log>> find_log(const Arguments& arguments);
// Checks that the log exists if --log names it, for callers that go on at other errors of a log.
Status check_named_log(const Arguments& arguments);

void tell_salvaged(const Salvaged& salvaged, const std::string& path, Console& console);

}  // namespace hone::cli
