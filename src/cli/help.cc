#include "cli/help.h"

#include "base/text.h"
#include "base/text_table.h"

#include <algorithm>
#include <utility>

namespace hone::cli {
namespace {

constexpr std::string_view kTagline = "hone: a learning compiler for tensor programs";

// Lines of at most `width` columns.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (std::string_view word : split_words(text)) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width)
      lines.emplace_back(word);
    else
      lines.back() += fmt::format(" {}", word);
  }
  return lines;
}

// Two columns; the second one is wrapped.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t first = 0;
  for (const auto& [left, right] : rows) first = std::max(first, left.size());
  TextTable table("ll");
  for (const auto& [left, right] : rows) {
    std::string title = left;
    std::vector<std::string> lines = wrapped(right, first < 60 ? 96 - first : 36);
    if (lines.empty()) lines.emplace_back();
    for (std::string& line : lines) table.add_row({std::exchange(title, ""), std::move(line)});
  }
  return table.to_string("  ");
}

std::string option_rows(std::span<const Option> options) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : options) {
    // Long options are in line, whether or not a short one precedes.
    const std::string indent = option.letter == 0 ? "    " : "";
    rows.emplace_back(indent + option_form(option),
                      fmt::format("{} {}", option.doc, option_facts(option)));
  }
  return two_columns(rows);
}

std::string command_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands())
    if (!command.name.empty()) rows.emplace_back(command.name, command.summary);
  return two_columns(rows);
}

std::string example_lines(std::span<const Example> examples, std::string_view indent) {
  std::string text;
  for (const Example& example : examples) {
    if (!example.doc.empty()) text += fmt::format("{}# {}\n", indent, example.doc);
    text += fmt::format("{}{}\n", indent, example.line);
  }
  return text;
}

std::string heading(const Command& command) {
  return command.name.empty() ? "hone" : fmt::format("hone {}", command.name);
}

}  // namespace

std::string paragraph(std::string_view text) { return join(wrapped(text, 79), "\n") + "\n"; }

std::string usage_line(const Command& command) {
  std::string line = fmt::format("{} [OPTION]...", heading(command));
  for (const Positional& positional : command.positionals) {
    const std::string_view dots = positional.repeats ? "..." : "";
    line += positional.optional ? fmt::format(" [{}]{}", positional.name, dots)
                                : fmt::format(" {}{}", positional.name, dots);
  }
  return line;
}

std::string option_form(const Option& option) {
  std::string form = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "";
  form += fmt::format("--{}", option.name);
  if (option.take != Take::nothing) form += fmt::format(" {}", option.value);
  return form;
}

std::string option_facts(const Option& option) {
  std::vector<std::string> facts;
  if (!option.words.empty()) facts.push_back(join(split(option.words, '|'), ", "));
  if (!option.fallback.empty()) facts.push_back(fmt::format("default: {}", option.fallback));
  if (option.repeats) facts.emplace_back("may be repeated");
  return facts.empty() ? "" : fmt::format("({})", join(facts, "; "));
}

std::string general_help(const TitleStyle& title) {
  std::string text = fmt::format("{}\n\n", kTagline);
  text += fmt::format("{}\n  hone [COMMAND] [OPTION]... [ARGUMENT]...\n\n", title("Usage"));
  text += fmt::format("{}\n{}\n", title("Commands"), command_rows());
  text += fmt::format("{}\n{}\n", title("Options of every command"), option_rows(common_options()));
  TextTable codes("rl");
  for (const ExitCode& exit : exit_codes())
    codes.add_row({std::to_string(exit.code), std::string(exit.meaning)});
  text += fmt::format("{}\n{}\n", title("Exit codes"), codes.to_string("  "));
  text +=
      fmt::format("{}\n{}\n", title("Examples"), example_lines(find_command("")->examples, "  "));
  text += "'hone help COMMAND' says more. Without a command, hone shows what it can do.\n";
  return text;
}

std::string command_help(const Command& command, const TitleStyle& title) {
  std::string text = fmt::format("{}.\n\n", command.summary);
  text += fmt::format("{}\n  {}\n\n", title("Usage"), usage_line(command));
  if (!command.positionals.empty()) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Positional& positional : command.positionals)
      rows.emplace_back(positional.name, positional.doc);
    text += fmt::format("{}\n{}\n", title("Arguments"), two_columns(rows));
  }
  if (!command.options.empty())
    text += fmt::format("{}\n{}\n", title("Options"), option_rows(command.options));
  text += fmt::format("{}\n{}\n", title("Options of every command"), option_rows(common_options()));
  if (!command.examples.empty())
    text += fmt::format("{}\n{}\n", title("Examples"), example_lines(command.examples, "  "));
  if (!command.text.empty()) text += fmt::format("{}\n", paragraph(command.text));
  text.pop_back();
  return text;
}

std::string markdown_help() {
  std::string text =
      "# The command line\n\n"
      "<!-- Generated by `hone help --markdown`; `./dev docs` writes it anew. -->\n\n"
      "Data goes to the standard output, everything else to the standard error. `NO_COLOR` is "
      "respected.\n\n";
  const auto options = [](std::span<const Option> rows) {
    std::string list;
    for (const Option& option : rows) {
      const std::string facts = option_facts(option);
      list += fmt::format("- `{}`: {}{}{}\n", option_form(option), option.doc,
                          facts.empty() ? "" : " ", facts);
    }
    return list + "\n";
  };
  for (const Command& command : commands()) {
    text += fmt::format("## {}\n\n{}.\n\n```\n{}\n```\n\n", heading(command), command.summary,
                        usage_line(command));
    for (const Positional& positional : command.positionals)
      text += fmt::format("- `{}`: {}\n", positional.name, positional.doc);
    if (!command.options.empty() || !command.positionals.empty()) text += options(command.options);
    if (!command.examples.empty())
      text += fmt::format("```\n{}```\n\n", example_lines(command.examples, ""));
    if (!command.text.empty()) text += fmt::format("{}\n", paragraph(command.text));
  }
  text += fmt::format("## Options of every command\n\n{}", options(common_options()));
  text += "## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCode& exit : exit_codes())
    text += fmt::format("| {} | {} |\n", exit.code, exit.meaning);
  return text;
}

}  // namespace hone::cli
