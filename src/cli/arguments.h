#pragma once

#include "cli/command.h"

#include <map>

namespace hone::cli {

// A command line that fits its command's row. Asking for what the row does not have is a bug.
class Arguments {
 public:
  explicit Arguments(const Command& command) : command_(&command) {}

  const Command& command() const { return *command_; }
  bool given(std::string_view name) const { return values_.contains(name); }
  bool takes(std::string_view name) const;  // the row has this option or positional
  // The value of the option or positional, or its fallback if it was not given.
  std::string text(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;  // of those that repeat

 private:
  friend class Parser;
  const Command* command_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// `words` is the command line without the program's name. -h and --help anywhere turn it into
// `help COMMAND`, --version into `version`.
Result<Arguments> parse_arguments(std::span<const std::string> words);

// True if the text is a value of the option.
Status check_value(const Option& option, std::string_view text);

}  // namespace hone::cli
