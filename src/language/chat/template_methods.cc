#include <algorithm>
#include <array>

#include "base/text.h"
#include "language/characters.h"
#include "language/chat/template_functions.h"
#include "language/chat/template_run.h"
#include "language/chat/text_methods.h"

namespace hone {
namespace {

// A method gets the text, and its arguments in order, null where one is not given.
struct TextCall {
  const MarkedText& text;
  std::vector<const TemplateValue*> given;
  TemplateBudget& budget;

  Result<std::optional<std::string_view>> text_at(size_t i) const {
    if (i >= given.size() || given[i] == nullptr || given[i]->is_none())
      return std::optional<std::string_view>();
    const MarkedText* const found = given[i]->text();
    if (found == nullptr) return bad_input("{} is given where a text is needed", given[i]->kind());
    return std::optional(found->bytes());
  }
  Result<int64_t> integer_at(size_t i, int64_t fallback) const {
    if (i >= given.size() || given[i] == nullptr) return fallback;
    const std::optional<int64_t> found = given[i]->integer();
    if (!found) return bad_input("{} is given where an integer is needed", given[i]->kind());
    return *found;
  }
};
using Made = Result<TemplateValue>;

Made list_of_texts(std::vector<MarkedText> parts) {
  TemplateValue::List items;
  for (MarkedText& part : parts) items.push_back(TemplateValue::of_text(std::move(part)));
  return TemplateValue::of_list(std::move(items));
}

Made strip_call(const TextCall& call, StripSide side) {
  return TemplateValue::of_text(stripped(call.text, side, HONE_TRY(call.text_at(0))));
}

Made split_call(const TextCall& call, bool from_right) {
  const std::optional<std::string_view> separator = HONE_TRY(call.text_at(0));
  if (separator && separator->empty()) return bad_input("the separator is empty");
  // Each part is a value.
  HONE_TRY(call.budget.spend(TemplateBudget::kItem * static_cast<int64_t>(call.text.size())));
  return list_of_texts(split_text(call.text, separator,
                                  HONE_TRY(call.integer_at(1, -1)), from_right));
}

Made ends_call(const TextCall& call, bool at_start) {
  TemplateValue::List all = {*call.given[0]};
  if (call.given[0]->list() != nullptr) all = *call.given[0]->list();
  for (const TemplateValue& one : all) {
    if (one.text() == nullptr) return bad_input("{} is given where a text is needed", one.kind());
    const std::string_view part = one.text()->bytes(), text = call.text.bytes();
    if (at_start ? text.starts_with(part) : text.ends_with(part)) return TemplateValue(true);
  }
  return TemplateValue(false);
}

Made replace_call(const TextCall& call) {
  const std::optional<std::string_view> from = HONE_TRY(call.text_at(0));
  const MarkedText* const to = call.given[1]->text();
  if (!from || to == nullptr) return bad_input("texts are needed to replace one by another");
  HONE_TRY(call.budget.spend(static_cast<int64_t>(call.text.size() * (to->size() + 1))));
  return TemplateValue::of_text(replaced(call.text, *from, *to, HONE_TRY(call.integer_at(2, -1))));
}

Made find_call(const TextCall& call, bool from_right) {
  const std::string_view part = HONE_TRY(call.text_at(0)).value_or("");
  std::optional<size_t> at;
  if (from_right) {
    HONE_TRY(call.budget.spend(static_cast<int64_t>(call.text.size() * (part.size() + 1))));
    const size_t found = call.text.bytes().rfind(part);
    if (found != std::string_view::npos) at = found;
  } else {
    at = find_text(call.text.bytes(), part);
  }
  if (!at) return TemplateValue(int64_t{-1});
  return TemplateValue(character_count(call.text.bytes().substr(0, *at)));
}

Made count_call(const TextCall& call) {
  const std::string_view part = HONE_TRY(call.text_at(0)).value_or("");
  if (part.empty()) return TemplateValue(character_count(call.text.bytes()) + 1);
  int64_t count = 0;
  std::string_view rest = call.text.bytes();
  while (const std::optional<size_t> at = find_text(rest, part)) {
    ++count;
    rest.remove_prefix(*at + part.size());
  }
  return TemplateValue(count);
}

Made join_call(const TextCall& call) {
  MarkedText made;
  bool is_first = true;
  for (const TemplateValue& one : HONE_TRY(items_of(*call.given[0], call.budget))) {
    if (one.text() == nullptr) return bad_input("{} is joined where texts are needed", one.kind());
    if (!std::exchange(is_first, false)) made.append(call.text);
    made.append(*one.text());
    HONE_TRY(call.budget.spend(static_cast<int64_t>(call.text.size() + one.text()->size())));
  }
  return TemplateValue::of_text(std::move(made));
}

Made cut_call(const TextCall& call, bool at_start) {
  const std::string_view part = HONE_TRY(call.text_at(0)).value_or("");
  const std::string_view text = call.text.bytes();
  const bool has = at_start ? text.starts_with(part) : text.ends_with(part);
  if (!has) return TemplateValue::of_text(call.text);
  return TemplateValue::of_text(
      call.text.part(at_start ? part.size() : 0, text.size() - part.size()));
}

// There are characters, and each is of the kind.
template <class Is>
Made each_is(const TextCall& call, const Is& is) {
  bool all = !call.text.empty();
  for (std::string_view rest = call.text.bytes(); all && !rest.empty();) {
    const Character one = first_character(rest);
    all = is(one.code);
    rest.remove_prefix(one.bytes);
  }
  return TemplateValue(all);
}

// Letters of ASCII are all of one case, and there are some.
Made case_call(const TextCall& call, const MarkedText& cased) {
  const bool has_letters = upper_case(call.text).bytes() != lower_case(call.text).bytes();
  return TemplateValue(has_letters && cased.bytes() == call.text.bytes());
}

struct TextMethod {
  std::string_view name;
  Made (*call)(const TextCall&);
  size_t needed = 0;
  std::array<std::string_view, 3> names = {};
};
constexpr TextMethod kTextMethods[] = {
    {"strip", [](const TextCall& c) { return strip_call(c, StripSide::both); }, 0, {"chars"}},
    {"lstrip", [](const TextCall& c) { return strip_call(c, StripSide::left); }, 0, {"chars"}},
    {"rstrip", [](const TextCall& c) { return strip_call(c, StripSide::right); }, 0, {"chars"}},
    {"split", [](const TextCall& c) { return split_call(c, false); }, 0, {"sep", "maxsplit"}},
    {"rsplit", [](const TextCall& c) { return split_call(c, true); }, 0, {"sep", "maxsplit"}},
    {"splitlines",
     [](const TextCall& c) -> Made {
       HONE_TRY(c.budget.spend(TemplateBudget::kItem * static_cast<int64_t>(c.text.size())));
       const bool keeps = c.given[0] != nullptr && c.given[0]->is_true();
       return list_of_texts(split_text_lines(c.text, keeps));
     },
     0,
     {"keepends"}},
    {"startswith", [](const TextCall& c) { return ends_call(c, true); }, 1, {"prefix"}},
    {"endswith", [](const TextCall& c) { return ends_call(c, false); }, 1, {"suffix"}},
    {"removeprefix", [](const TextCall& c) { return cut_call(c, true); }, 1, {"prefix"}},
    {"removesuffix", [](const TextCall& c) { return cut_call(c, false); }, 1, {"suffix"}},
    {"replace", replace_call, 2, {"old", "new", "count"}},
    {"find", [](const TextCall& c) { return find_call(c, false); }, 1, {"sub"}},
    {"rfind", [](const TextCall& c) { return find_call(c, true); }, 1, {"sub"}},
    {"count", count_call, 1, {"sub"}},
    {"join", join_call, 1, {"iterable"}},
    {"upper", [](const TextCall& c) -> Made { return TemplateValue::of_text(upper_case(c.text)); }},
    {"lower", [](const TextCall& c) -> Made { return TemplateValue::of_text(lower_case(c.text)); }},
    {"title", [](const TextCall& c) -> Made { return TemplateValue::of_text(title_case(c.text)); }},
    {"capitalize",
     [](const TextCall& c) -> Made { return TemplateValue::of_text(capitalized(c.text)); }},
    {"isdigit",
     [](const TextCall& c) {
       return each_is(c, [](char32_t code) { return code >= '0' && code <= '9'; });
     }},
    {"isspace", [](const TextCall& c) { return each_is(c, is_python_blank); }},
    {"isalpha",
     [](const TextCall& c) {
       return each_is(c, [](char32_t code) { return kind_of(code) == CharacterKind::letter; });
     }},
    {"isupper", [](const TextCall& c) { return case_call(c, upper_case(c.text)); }},
    {"islower", [](const TextCall& c) { return case_call(c, lower_case(c.text)); }}};

template <size_t size>
std::span<const std::string_view> given_names(const std::array<std::string_view, size>& names) {
  const auto end = std::ranges::find(names, std::string_view());
  return std::span(names).first(static_cast<size_t>(end - names.begin()));
}

Made text_method(const MarkedText& text, std::string_view name, const TemplateArguments& arguments,
                 TemplateBudget& budget) {
  const auto* const method = std::ranges::find(kTextMethods, name, &TextMethod::name);
  if (method == std::end(kTextMethods)) {
    std::vector<std::string_view> known;
    for (const TextMethod& one : kTextMethods) known.push_back(one.name);
    return unknown_of("method of a text", name, known);
  }
  // Characters are looked at one by one, and their places are kept.
  HONE_TRY(budget.spend(8 * static_cast<int64_t>(text.size())));
  return method->call(
      {text,
       HONE_TRY(bound_arguments(arguments, given_names(method->names), method->needed)), budget});
}

Made dict_method(const TemplateValue::Dict& dict, std::string_view name,
                 const TemplateArguments& arguments, TemplateBudget& budget) {
  constexpr std::string_view kMethods[] = {"items", "keys", "values", "get"};
  HONE_TRY(budget.spend(TemplateBudget::kItem * std::ssize(dict)));
  if (name == "get") {
    constexpr std::string_view kNames[] = {"key", "default"};
    const auto given = HONE_TRY(bound_arguments(arguments, kNames, 1));
    const MarkedText* const key = given[0]->text();
    const TemplateValue* const found = key == nullptr ? nullptr : field_of(dict, key->bytes());
    if (found != nullptr) return *found;
    return given[1] == nullptr ? TemplateValue(TemplateValue::None()) : *given[1];
  }
  if (std::ranges::find(kMethods, name) == std::end(kMethods)) {
    const TemplateValue* const field = field_of(dict, name);
    if (field != nullptr) return bad_input("{} is no function", field->kind());
    return unknown_of("method of a dictionary", name, kMethods);
  }
  (void)HONE_TRY(bound_arguments(arguments, {}, 0));
  TemplateValue::List items;
  for (const auto& [key, value] : dict) {
    if (name == "keys")
      items.push_back(TemplateValue::of_text(key));
    else if (name == "values")
      items.push_back(value);
    else
      items.push_back(
          HONE_TRY(TemplateValue::of_list({TemplateValue::of_text(key), value}, true)));
  }
  return TemplateValue::of_list(std::move(items));
}

Made list_method(const TemplateValue::List& list, std::string_view name,
                 const TemplateArguments& arguments, TemplateBudget& budget) {
  constexpr std::string_view kMethods[] = {"count", "index"}, kNames[] = {"value"};
  if (std::ranges::find(kMethods, name) == std::end(kMethods))
    return unknown_of("method of a list", name, kMethods);
  const auto given = HONE_TRY(bound_arguments(arguments, kNames, 1));
  int64_t count = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!HONE_TRY(equal_values(list[i], *given[0], budget))) continue;
    if (name == "index") return TemplateValue(static_cast<int64_t>(i));
    ++count;
  }
  if (name == "index") return bad_input("the list has no such item");
  return TemplateValue(count);
}

}  // namespace

Result<TemplateValue> call_method(const TemplateValue& object, std::string_view name,
                                  const TemplateArguments& arguments, TemplateBudget& budget) {
  if (const MarkedText* const text = object.text())
    return text_method(*text, name, arguments, budget);
  if (const TemplateValue::Dict* const dict = object.dict())
    return dict_method(*dict, name, arguments, budget);
  if (const TemplateValue::List* const list = object.list())
    return list_method(*list, name, arguments, budget);
  if (const auto* const loop = object.get<const TemplateLoop*>();
      loop != nullptr && name == "cycle") {
    if (arguments.items.empty()) return bad_input("loop.cycle() is given nothing");
    return arguments.items[static_cast<size_t>((*loop)->index) % arguments.items.size()];
  }
  if (const auto* const undefined = object.get<TemplateValue::Undefined>())
    return bad_input("{} is undefined, so it has no method {}", excerpt(undefined->name),
                     hone::quoted(excerpt(name)));
  return bad_input("{} has no method {}", object.kind(), hone::quoted(excerpt(name)));
}

}  // namespace hone
