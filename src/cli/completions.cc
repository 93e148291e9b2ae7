#include "base/text.h"
#include "cli/help.h"

namespace hone::cli {
namespace {

bool takes_path(Take take) {
  return take == Take::file || take == Take::output || take == Take::output_path;
}
bool takes_file(Take take) { return takes_path(take) || take == Take::model; }

std::string words_of(Take take, std::string_view words) {
  return join(known_words(take, words), " ");
}

// First words of commands, and the second ones of a group.
std::vector<std::string> members(std::string_view group) {
  std::vector<std::string> words;
  for (std::string_view name : command_names()) {
    const std::vector<std::string_view> parts = split(name, ' ');
    if (group.empty() ? words.empty() || words.back() != parts[0]
                      : parts.size() == 2 && parts[0] == group) {
      words.emplace_back(parts[group.empty() ? 0 : 1]);
    }
  }
  return words;
}

// ---- bash --------------------------------------------------------------------------------------

std::string bash_values(const Command& command) {
  std::string cases;
  for (const Option& option : options_of(command)) {
    if (option.take == Take::nothing) continue;
    const std::string letter =
        option.letter != 0 ? fmt::format(" | '{} -{}'", command.name, option.letter) : "";
    const std::string action =
        takes_file(option.take)
            ? "_hone_files"
            : fmt::format("_hone_words '{}'", words_of(option.take, option.words));
    cases +=
        fmt::format("    '{} --{}'{}) {}; return ;;\n", command.name, option.name, letter, action);
  }
  return cases;
}

std::string bash_arguments(const Command& command) {
  std::string words = command.name.empty() ? join(members(""), " ") : "";
  for (const Positional& positional : command.positionals)
    words += words_of(positional.take, positional.words);
  std::string flags;
  for (const Option& option : options_of(command))
    flags += fmt::format("{}--{}", flags.empty() ? "" : " ", option.name);
  const bool files = !command.positionals.empty() && takes_file(command.positionals[0].take);
  return fmt::format("    '{}') flags='{}' words='{}'{} ;;\n", command.name, flags, words,
                     files ? " files=1" : "");
}

std::string bash_script() {
  std::string values;
  std::string arguments;
  std::string groups;
  for (const Command& command : commands()) {
    values += bash_values(command);
    arguments += bash_arguments(command);
  }
  std::string group_pattern;
  for (const std::string& word : members("")) {
    if (!is_group(word) || find_command(word) != nullptr) continue;
    arguments += fmt::format("    '{}') words='{}' ;;\n", word, join(members(word), " "));
    group_pattern += fmt::format("{}{}", group_pattern.empty() ? "" : " | ", word);
  }
  return fmt::format(R"(# bash completion for hone; made by 'hone completions bash'.
_hone_words() {{ COMPREPLY=($(compgen -W "$1" -- "$cur")); }}
_hone_files() {{
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}}
_hone() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command='' flags='' words='' files='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] && break
    command+="${{command:+ }}${{COMP_WORDS[i]}}"
    case $command in {}) ;; *) break ;; esac
  done
  # The colon of zoo:NAME is a word of its own.
  if [[ $cur == : || $prev == : ]]; then
    cur=${{cur#:}}
    _hone_words '{}'
    return
  fi
  case "$command $prev" in
{}  esac
  case $command in
{}  esac
  if [[ $cur == -* ]]; then
    _hone_words "$flags"
  elif [[ $files ]]; then
    _hone_files
  else
    _hone_words "$words"
  fi
}}
complete -F _hone hone
)",
                     group_pattern, words_of(Take::zoo_name, ""), values, arguments);
}

// ---- zsh ---------------------------------------------------------------------------------------

// Inside single quotes and a spec of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += fmt::format("\\{}", c);
    else
      out += c;
  }
  return out;
}

std::string zsh_action(Take take, std::string_view words) {
  if (take == Take::model) return "_hone_model";
  if (takes_path(take)) return "_files";
  const std::string known = words_of(take, words);
  return known.empty() ? " " : fmt::format("({})", known);
}

std::string zsh_arguments(const Command& command) {
  std::string specs;
  for (const Option& option : options_of(command)) {
    const std::string value =
        option.take == Take::nothing
            ? ""
            : fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option.take, option.words));
    const std::string doc = zsh_text(option.doc);
    const std::string_view star = option.repeats ? "*" : "";
    specs += fmt::format(" \\\n        '{}--{}[{}]{}'", star, option.name, doc, value);
    if (option.letter != 0)
      specs += fmt::format(" \\\n        '{}-{}[{}]{}'", star, option.letter, doc, value);
  }
  for (const Positional& positional : command.positionals) {
    specs += fmt::format(" \\\n        '{}:{}:{}'", positional.repeats ? "*" : "",
                         zsh_text(positional.name), zsh_action(positional.take, positional.words));
  }
  return specs;
}

std::string zsh_described(std::string_view group) {
  std::string rows;
  for (const std::string& word : members(group)) {
    const std::string name = group.empty() ? word : fmt::format("{} {}", group, word);
    const Command* command = find_command(name);
    rows += fmt::format("'{}:{}' ", word, zsh_text(command ? command->summary : "Built-in models"));
  }
  return rows;
}

std::string zsh_script() {
  std::string cases;
  std::string groups;
  for (const Command& command : commands()) {
    if (command.name.empty()) continue;
    cases +=
        fmt::format("    '{}')\n      _arguments -s{} ;;\n", command.name, zsh_arguments(command));
  }
  for (const std::string& word : members("")) {
    if (!is_group(word) || find_command(word) != nullptr) continue;
    groups += fmt::format(
        "  if [[ $command == '{0}' ]]; then\n"
        "    if ((CURRENT == 2)); then\n"
        "      local -a members=({1})\n      _describe -t commands '{0} command' members\n"
        "      return\n"
        "    fi\n"
        "    command+=\" $words[2]\"\n    shift words\n    ((CURRENT--))\n"
        "  fi\n",
        word, zsh_described(word));
  }
  return fmt::format(R"(#compdef hone
# zsh completion for hone; made by 'hone completions zsh'.
_hone_model() {{
  local -a models=({})
  _alternative 'files:file:_files' 'models:zoo model:compadd -P zoo\: -a models'
}}
_hone() {{
  if ((CURRENT == 2)); then
    local -a names=({})
    _describe -t commands 'hone command' names
    return
  fi
  shift words
  ((CURRENT--))
  local command=$words[1]
{}  case $command in
{}  esac
}}
if [[ $funcstack[1] == _hone ]]; then _hone "$@"; else compdef _hone hone; fi
)",
                     words_of(Take::zoo_name, ""), zsh_described(""), groups, cases);
}

// ---- fish --------------------------------------------------------------------------------------

std::string fish_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Where the command's name is on the line.
std::string fish_condition(const Command& command) {
  std::vector<std::string> seen;
  for (std::string_view word : split(command.name, ' '))
    seen.push_back(fmt::format("__fish_seen_subcommand_from {}", word));
  return join(seen, "; and ");
}

std::string fish_options(std::string_view condition, std::span<const Option> options) {
  std::string lines;
  for (const Option& option : options) {
    std::string line = "complete -c hone";
    if (!condition.empty()) line += fmt::format(" -n '{}'", condition);
    if (option.letter != 0) line += fmt::format(" -s {}", option.letter);
    line += fmt::format(" -l {} -d '{}'", option.name, fish_text(option.doc));
    if (takes_file(option.take)) {
      line += " -r -F";
    } else if (option.take != Take::nothing) {
      line += fmt::format(" -x -a '{}'", words_of(option.take, option.words));
    }
    lines += line + "\n";
  }
  return lines;
}

std::string fish_script() {
  std::string lines =
      "# fish completion for hone; made by 'hone completions fish'.\ncomplete -c hone -f\n";
  lines += fish_options("", common_options());
  for (const std::string& word : members("")) {
    const Command* command = find_command(word);
    lines += fmt::format("complete -c hone -n __fish_use_subcommand -a {} -d '{}'\n", word,
                         fish_text(command ? command->summary : "Built-in models"));
    const std::vector<std::string> inner = members(word);
    for (const std::string& member : inner) {
      lines += fmt::format(
          "complete -c hone -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -a {} -d '{}'\n",
          word, join(inner, " "), member,
          fish_text(find_command(fmt::format("{} {}", word, member))->summary));
    }
  }
  for (const Command& command : commands()) {
    if (command.name.empty()) continue;
    const std::string condition = fish_condition(command);
    lines += fish_options(condition, command.options);
    for (const Positional& positional : command.positionals) {
      std::vector<std::string> words = known_words(positional.take, positional.words);
      if (positional.take == Take::model)
        for (const std::string& name : known_words(Take::zoo_name, ""))
          words.push_back("zoo:" + name);
      lines += fmt::format("complete -c hone -n '{}' -a '{}'{}\n", condition, join(words, " "),
                           takes_file(positional.take) ? " -F" : "");
    }
  }
  return lines;
}

}  // namespace

std::string completions(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  HONE_CHECK(shell == "fish", "completions for '{}'", shell);
  return fish_script();
}

}  // namespace hone::cli
