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
  text += ".SH ENVIRONMENT\n" + tagged("NO_COLOR", "if set, there are no colours by default");
  return text;
}

}  // namespace hone::cli
