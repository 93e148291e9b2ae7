#include "zoo/spec.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/checked_text.h"
#include "base/text.h"

namespace hone {
namespace {

Result<const ZooOption*> find_option(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ZooOption& option : kZooOptions) {
    if (option.name == name) return &option;
    known.push_back(option.name);
  }
  const std::string hint = did_you_mean(name, known);
  return usage_error("a zoo model has no option '{}'", excerpt(name))
      .with_hint(hint.empty() ? fmt::format("it has {}", join(known, ", ")) : hint);
}

struct Spec {
  std::string_view name;
  ZooOptions options = {};
};

Result<Spec> parse_spec(std::string_view spec) {
  const std::vector<std::string_view> parts = split(spec, ',');
  Spec parsed = {.name = parts[0]};
  std::set<std::string_view> given;
  for (std::string_view part : std::span(parts).subspan(1)) {
    const size_t sign = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, sign);
    if (name.empty()) {
      return usage_error(
          "'zoo:{}' {}", excerpt(spec),
          spec.ends_with(',') ? "ends in a comma" : "has the name of an option missing");
    }
    const ZooOption* option = HONE_TRY(find_option(name));
    const bool has_value = sign < part.size();
    const bool is_flag = option->kind == ZooOption::Kind::flag;
    if (has_value && is_flag) return usage_error("'{}' takes no value", name);
    if (!has_value && !is_flag)
      return usage_error("'{}' needs a value: {}={}", name, name, option->value);
    if (!given.insert(name).second) return usage_error("'{}' is given twice", name);
    HONE_TRY(set_option(parsed.options, *option, name, has_value ? part.substr(sign + 1) : ""));
  }
  return parsed;
}

}  // namespace

Status set_option(ZooOptions& options, const ZooOption& option, std::string_view shown,
                  std::string_view text) {
  switch (option.kind) {
    case ZooOption::Kind::flag: option.set(options, 1); break;
    case ZooOption::Kind::integer:
      option.set(options, HONE_TRY(parse_int_in(shown, text, option.low, option.high)));
      break;
    case ZooOption::Kind::word: {
      HONE_TRY(check_word(shown, text, option.words));
      const std::vector<std::string_view> words = split(option.words, '|');
      option.set(options, std::ranges::find(words, text) - words.begin());
      break;
    }
  }
  return {};
}

Result<Graph> build_zoo_spec(std::string_view spec) {
  const Spec parsed = HONE_TRY(parse_spec(spec));
  return build_zoo_model(parsed.name, parsed.options);
}

Status check_zoo_spec(std::string_view spec) {
  const Spec parsed = HONE_TRY(parse_spec(spec));
  const bool is_known = std::ranges::any_of(
      zoo_entries(), [&](const ZooEntry& entry) { return entry.name == parsed.name; });
  return is_known ? Status() : build_zoo_model(parsed.name).error();
}

}  // namespace hone
