#include "base/text.h"
#include "cli/help.h"

namespace hone::cli {
namespace {

// A line of text: backslashes and hyphens are literal, and no leading dot makes a request of it.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

// A tagged paragraph: the term in bold, then what it means.
std::string tagged(std::string_view term, std::string_view meaning) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(term), roff(meaning));
}

std::string options(std::span<const Option> rows) {
  std::string text;
  for (const Option& option : rows) {
    const std::string facts = option_facts(option);
    text += tagged(option_form(option),
                   fmt::format("{}{}{}", option.doc, facts.empty() ? "" : " ", facts));
  }
  return text;
}

// All that the program reads of it; tests/cli/man_page.sh compares.
struct Variable {
  std::string_view name;
  std::string_view doc;
};
constexpr Variable kEnvironment[] = {
    {"CC", "the C compiler that makes libraries (default: cc)"},
    {"HOME", "the folder in which .cache and .local/share are, if XDG_ names no others"},
    {"HONE_CUDA_LIBRARY", "the library of NVIDIA's driver (default: libcuda.so.1)"},
    {"HONE_LOG", "the file of what was measured (default: hone/log.db in XDG_DATA_HOME)"},
    {"HONE_PRICES",
     "the folder of fitted and learned prices; those that hone ships then do not count (default: "
     "hone/prices in XDG_DATA_HOME)"},
    {"HONE_PTXAS",
     "NVIDIA's assembler, for machine code of GPUs in compiled files; none: there is none "
     "(default: "
     "ptxas in PATH)"},
    {"HONE_PYTHON", "the Python that has the engines of bench --vs (default: python3)"},
    {"NO_COLOR", "if set, there are no colours by default"},
    {"TERM", "if it is dumb, there are no colours by default"},
    {"PATH", "the folders of the programs that hone runs, such as cbc for integer programs"},
    {"TMPDIR", "the folder of temporary files (default: /tmp)"},
    {"XDG_CACHE_HOME",
     "the folder in which hone keeps what it has compiled (default: .cache in HOME)"},
    {"XDG_DATA_HOME",
     "the folder in which hone keeps its log and its prices (default: .local/share in HOME)"}};

}  // namespace

std::string man_page(std::string_view version) {
  std::string text = fmt::format(".TH HONE 1 \"\" \"hone {}\" \"User Commands\"\n", version);
  text += ".SH NAME\nhone \\- a learning compiler for tensor programs\n";
  text += ".SH SYNOPSIS\n.B hone\n[COMMAND] [OPTION]... [ARGUMENT]...\n";
  text +=
      ".SH DESCRIPTION\nData goes to the standard output, everything else to the standard error. "
      "Without a command, hone shows what it can do.\n";
  text += ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (command.name.empty()) continue;
    text += fmt::format(".SS {}\n{}.\n", roff(usage_line(command)), roff(command.summary));
    if (!command.text.empty()) text += fmt::format(".PP\n{}\n", roff(command.text));
    for (const Positional& positional : command.positionals)
      text += tagged(positional.name, positional.doc);
    text += options(command.options);
    for (const Example& example : command.examples)
      text += fmt::format(".PP\n.EX\n{}\n.EE\n", roff(example.line));
  }
  text += ".SH OPTIONS\nEvery command takes these.\n" + options(common_options());
  text += ".SH EXIT STATUS\n";
  for (const ExitCode& exit : exit_codes()) text += tagged(std::to_string(exit.code), exit.meaning);
  text += ".SH ENVIRONMENT\n";
  for (const Variable& variable : kEnvironment) text += tagged(variable.name, variable.doc);
  return text;
}

}  // namespace hone::cli
