#pragma once

#include "cli/command.h"

#include <functional>
#include <string>

// The table of commands in the forms that people and shells read. All are pure functions of it.

namespace hone::cli {

// How titles look: bold, or as they are.
using TitleStyle = std::function<std::string(std::string_view)>;

std::string general_help(const TitleStyle& title);
std::string command_help(const Command& command, const TitleStyle& title);
std::string markdown_help();                      // docs/cli.md
std::string man_page(std::string_view version);   // roff
std::string completions(std::string_view shell);  // bash, zsh or fish

// The text in lines of at most 79 columns.
std::string paragraph(std::string_view text);

// "hone run [OPTION]... MODEL"
std::string usage_line(const Command& command);
// "-o, --output FILE"
std::string option_form(const Option& option);
// The text behind the doc of an option in help: "(default: 0)", "(tiny or full; default: full)".
std::string option_facts(const Option& option);

}  // namespace hone::cli
