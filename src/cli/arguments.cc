#include "cli/arguments.h"

#include "base/checked_text.h"
#include "base/text.h"
#include "front/front_end.h"
#include "session/echo.h"

#include <algorithm>
#include <cmath>

namespace hone::cli {
namespace {

Status check_value(std::string_view shown, Take take, std::string_view words, int64_t low,
                   int64_t high, std::string_view text) {
  if (take == Take::integer) {
    HONE_TRY(parse_int_in(shown, text, low, high));
  } else if (take == Take::real) {
    const Result<double> number = parse_double(text);
    if (!number.ok() || !std::isfinite(*number) || *number < 0)
      return usage_error("{}: '{}' is not a number of at least 0", shown, excerpt(text));
  } else if (text.empty() && take != Take::text) {
    return usage_error("{}: the value is empty", shown);
  } else if (take == Take::word) {
    HONE_TRY(check_word(shown, text, words));
  }
  return {};
}

bool looks_like_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

std::string full_name(const Command& command) {
  return command.name.empty() ? "hone" : fmt::format("hone {}", command.name);
}

}  // namespace

Status check_value(const Option& option, std::string_view text) {
  return check_value(fmt::format("--{}", option.name), option.take, option.words, option.low,
                     option.high, text);
}

class Parser {
 public:
  explicit Parser(const Command& command)
      : command_(command), options_(options_of(command)), arguments_(command) {}

  Result<Arguments> parse(std::span<const std::string> words) {
    bool only_positionals = false;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (!only_positionals && word == "--") {
        only_positionals = true;
      } else if (!only_positionals && looks_like_option(word)) {
        HONE_TRY(option(words, i));
      } else {
        words_.push_back(word);
      }
    }
    HONE_TRY(assign());
    return finish();
  }

 private:
  // Consumes words[i] and, if the value stands by itself, words[i + 1].
  Status option(std::span<const std::string> words, size_t& i) {
    std::string_view word = words[i];
    const bool is_long = word.starts_with("--");
    const size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
    const std::string_view shown = word.substr(0, end);
    const Option* found = find(shown);
    if (found == nullptr) return unknown_option(shown);

    std::string_view value = word.substr(end);
    bool has_value = end < word.size();
    if (is_long && has_value) value.remove_prefix(1);
    if (found->take == Take::nothing) {
      if (has_value) return usage_error("{} takes no value", shown);
    } else if (!has_value) {
      if (i + 1 == words.size()) return usage_error("{} needs a value: {}", shown, found->doc);
      value = words[++i];
      if (value.starts_with("--") && find(value) != nullptr)
        return usage_error("{} needs a value, found the option {}", shown, value);
    }

    std::vector<std::string>& values = arguments_.values_[std::string(found->name)];
    if (!values.empty() && !found->repeats) return usage_error("{} is given twice", shown);
    if (found->take != Take::nothing) HONE_TRY(check_value(*found, value));
    values.emplace_back(value);
    return {};
  }

  // Words without dashes to positionals, in their order. An optional one gets a word only if those
  // behind it that are needed get theirs.
  Status assign() {
    size_t needed = 0, next = 0;
    for (const Positional& each : command_.positionals) needed += each.optional ? 0 : 1;
    for (const Positional& each : command_.positionals) {
      if (!each.optional) --needed;
      for (bool is_first = true; next < words_.size() && (is_first || each.repeats);
           is_first = false, ++next) {
        if ((each.optional || !is_first) && words_.size() - next <= needed) break;
        const std::string& word = words_[next];
        HONE_TRY(check_value(each.name, each.take, each.words, 0, INT64_MAX, word));
        arguments_.values_[std::string(each.name)].push_back(word);
      }
    }
    if (next == words_.size()) return {};
    return usage_error("'{}' has no place for the argument '{}'", full_name(command_),
                       excerpt(words_[next]))
        .with_hint(help_hint());
  }

  Result<Arguments> finish() {
    for (const Positional& expected : command_.positionals) {
      if (!expected.optional && !arguments_.given(expected.name)) {
        return usage_error("'{}' needs {}: {}", full_name(command_), expected.name, expected.doc)
            .with_hint(help_hint());
      }
    }
    return std::move(arguments_);
  }

  const Option* find(std::string_view shown) const {
    for (const Option& option : options_) {
      if (shown.starts_with("--") ? shown.substr(2) == option.name
                                  : option.letter != 0 && shown[1] == option.letter) {
        return &option;
      }
    }
    return nullptr;
  }

  Error unknown_option(std::string_view shown) const {
    std::vector<std::string> names;
    for (const Option& option : options_) names.push_back(fmt::format("--{}", option.name));
    const std::string hint = did_you_mean(shown, names);
    return usage_error("'{}' has no option {}", full_name(command_), excerpt(shown))
        .with_hint(hint.empty() ? help_hint() : hint);
  }

  std::string help_hint() const {
    return fmt::format("see 'hone help{}{}'", command_.name.empty() ? "" : " ", command_.name);
  }

  const Command& command_;
  std::vector<Option> options_;
  Arguments arguments_;
  std::vector<std::string> words_;  // without dashes
};

namespace {

// Options that every command takes may stand before it: how many words they are.
size_t leading_options(std::span<const std::string> words) {
  size_t count = 0;
  while (count < words.size() && words[count].starts_with("--")) {
    const std::string_view word = std::string_view(words[count]).substr(2);
    const size_t end = std::min(word.find('='), word.size());
    const auto option = std::ranges::find(common_options(), word.substr(0, end), &Option::name);
    if (option == common_options().end()) break;
    const bool has_value = option->take == Take::nothing || end < word.size();
    count += has_value ? 1 : 2;
  }
  return std::min(count, words.size());
}

// The command's name takes one or two words of the line, which `words` loses.
Result<const Command*> take_command(std::span<const std::string>& words) {
  if (words.empty() || looks_like_option(words[0])) return find_command("");
  std::string name = words[0];
  if (name.empty()) return usage_error("the command is empty").with_hint("see 'hone help'");
  // A model alone is taken the whole way.
  if (front_end_named(name) != nullptr || name.starts_with("zoo:")) return find_command("demo");
  words = words.subspan(1);
  // A command may have others below it: "train", which takes a file, and "train cost".
  const bool is_member =
      !words.empty() && find_command(fmt::format("{} {}", name, words[0])) != nullptr;
  if (is_group(name) && (is_member || find_command(name) == nullptr)) {
    std::vector<std::string_view> members;
    for (std::string_view member : command_names())
      if (member.starts_with(name + " ")) members.push_back(member.substr(name.size() + 1));
    if (words.empty() || looks_like_option(words[0]))
      return usage_error("'hone {}' needs one of {}", name, join(members, ", "))
          .with_hint(fmt::format("see 'hone help {}'", name));
    name += " " + words[0];
    words = words.subspan(1);
  }
  if (const Command* command = find_command(name)) return command;
  return unknown_command(name);
}

// Words before any --.
bool has_word(std::span<const std::string> words, std::string_view long_form,
              std::string_view short_form) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == long_form || word == short_form) return true;
  }
  return false;
}

// The command that a line with --help is about: its leading words, as far as they name one.
Result<Arguments> help_about(std::span<const std::string> words) {
  std::vector<std::string> topic;
  for (const std::string& word : words) {
    if (looks_like_option(word)) break;
    const bool is_inside =
        !topic.empty() && is_group(topic[0]) &&
        (find_command(topic[0]) == nullptr || find_command(topic[0] + " " + word) != nullptr);
    if (topic.empty() || is_inside) topic.push_back(word);
    if (topic.size() == 2) break;
  }
  return Parser(*find_command("help")).parse(topic);
}

}  // namespace

Result<Arguments> parse_arguments(std::span<const std::string> words) {
  if (has_word(words, "--help", "-h")) return help_about(words);
  if (!words.empty() && words[0] == "--version")
    return Parser(*find_command("version")).parse(words.subspan(1));
  const size_t leading = leading_options(words);
  if (leading == words.size()) return Parser(*find_command("")).parse(words);
  std::span<const std::string> rest = words.subspan(leading);
  const Command* command = HONE_TRY(take_command(rest));
  std::vector<std::string> all(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(leading));
  all.insert(all.end(), rest.begin(), rest.end());
  return Parser(*command).parse(all);
}

bool Arguments::takes(std::string_view name) const {
  const auto is_it = [&](const auto& one) { return one.name == name; };
  return std::ranges::any_of(options_of(*command_), is_it) ||
         std::ranges::any_of(command_->positionals, is_it);
}

std::string Arguments::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second.front();
  for (const Option& option : options_of(*command_))
    if (option.name == name) return std::string(option.fallback);
  for (const Positional& positional : command_->positionals)
    if (positional.name == name) return "";
  HONE_CHECK(false, "the row of '{}' has no option '{}'", command_->name, name);
}

int64_t Arguments::integer(std::string_view name) const {
  const Result<int64_t> number = parse_int(text(name));
  HONE_CHECK(number.ok(), "--{} has no integer", name);
  return *number;
}

double Arguments::real(std::string_view name) const {
  const Result<double> number = parse_double(text(name));
  HONE_CHECK(number.ok(), "--{} has no number", name);
  return *number;
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace hone::cli
