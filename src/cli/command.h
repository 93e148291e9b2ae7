#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The command line as a table. Parsing, help, completions, the man page and docs/cli.md all read
// the rows of commands.cc and of its rows_*.h; nothing about a command or an option is said
// anywhere else.

namespace hone::cli {

class Arguments;
class Console;

// The kind of a value: decides how it is checked and what completes it.
enum class Take : uint8_t {
  nothing,  // a flag
  text,
  file,         // that is read, or a folder
  output,       // a file that is written; "-" is the standard output
  output_path,  // the same, or a folder
  model,        // a file, "-", or zoo:NAME
  integer,      // within low..high
  real,         // not negative, finite
  word,         // one of `words`
  zoo_name,
  op,
  passes,  // names with commas between them
  command,
};

struct Option {
  std::string_view name;  // without the dashes
  char letter = 0;        // 'o' for -o; 0: none
  Take take = Take::nothing;
  std::string_view value = "";  // what help calls the value: "FILE"
  std::string_view doc;         // one sentence without a period
  std::string_view fallback = "";
  std::string_view words = "";  // "tiny|full"
  int64_t low = 0;
  int64_t high = INT64_MAX;
  bool repeats = false;
};

// Several lists of options or commands as one.
template <class Row, size_t... counts>
constexpr std::array<Row, (counts + ...)> joined(const Row (&... lists)[counts]) {
  std::array<Row, (counts + ...)> all;
  size_t next = 0;
  const auto add = [&](const auto& list) {
    for (const Row& row : list) all[next++] = row;
  };
  (add(lists), ...);
  return all;
}

// An argument without dashes.
struct Positional {
  std::string_view name;  // "FILE"
  Take take;
  std::string_view doc;
  bool optional = false;
  bool repeats = false;
  std::string_view words = "";
};

struct Example {
  std::string_view line;
  std::string_view doc;
};

struct Command {
  std::string_view name;       // "run", "zoo list"
  std::string_view summary;    // one line without a period
  std::string_view text = "";  // paragraphs, with an empty line between them
  std::span<const Positional> positionals = {};
  std::span<const Option> options = {};
  std::span<const Example> examples = {};
  Status (*run)(const Arguments&, Console&) = nullptr;
};

// The first row is `hone` without a command. Commands that only hone calls are not among them.
std::span<const Command> commands();
std::span<const Option> common_options();  // that every command takes

const Command* find_command(std::string_view name);
// Hone alone calls it, in child processes; it wants to know the signal that ends one.
bool is_hidden(const Command& command);
// "zoo" begins "zoo list" and is not a command itself.
bool is_group(std::string_view name);
std::vector<std::string_view> command_names();           // without the nameless one
std::vector<Option> options_of(const Command& command);  // its own, then the common ones
// The words that a value may be: stated ones, ops, passes, zoo models, commands. Empty: free.
std::vector<std::string> known_words(Take take, std::string_view words);
// The error for a command that does not exist: it names the command, and hints at a similar one.
Error unknown_command(std::string_view name);

struct ExitCode {
  int code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

}  // namespace hone::cli
