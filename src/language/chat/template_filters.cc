#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "language/chat/template_functions.h"
#include "language/chat/text_methods.h"

namespace hone {
namespace {

using Made = Result<TemplateValue>;

// A filter at work: its value, and its arguments in order, null where one is not given.
struct FilterCall {
  const TemplateValue& value;
  std::vector<const TemplateValue*> given;
  const TemplateArguments& all;
  TemplateBudget& budget;

  bool flag(size_t i, bool fallback = false) const {
    return given[i] == nullptr ? fallback : given[i]->is_true();
  }
  Result<MarkedText> text(size_t i, std::string_view fallback) const {
    if (given[i] == nullptr) return MarkedText(fallback);
    return text_of(*given[i], budget);
  }
  Result<std::optional<int64_t>> integer(size_t i) const {
    if (given[i] == nullptr || given[i]->is_none()) return std::optional<int64_t>();
    if (!given[i]->integer())
      return bad_input("{} is given where an integer is needed", given[i]->kind());
    return given[i]->integer();
  }
};

Made of_texts(const FilterCall& call, MarkedText (*change)(const MarkedText&)) {
  return TemplateValue::of_text(change(HONE_TRY(text_of(call.value, call.budget))));
}

Made trim_filter(const FilterCall& call) {
  const MarkedText text = HONE_TRY(text_of(call.value, call.budget));
  HONE_TRY(call.budget.spend(8 * static_cast<int64_t>(text.size())));
  if (call.given[0] == nullptr || call.given[0]->is_none())
    return TemplateValue::of_text(stripped(text, StripSide::both, std::nullopt));
  const MarkedText chars = HONE_TRY(call.text(0, ""));
  HONE_TRY(call.budget.spend(static_cast<int64_t>(text.size() * (chars.size() + 1))));
  return TemplateValue::of_text(stripped(text, StripSide::both, chars.bytes()));
}

Made length_filter(const FilterCall& call) {
  const TemplateValue& value = call.value;
  if (value.is_undefined()) return TemplateValue(int64_t{0});
  if (value.list() != nullptr) return TemplateValue(static_cast<int64_t>(value.list()->size()));
  if (value.dict() != nullptr) return TemplateValue(static_cast<int64_t>(value.dict()->size()));
  if (value.text() == nullptr) return bad_input("{} has no length", value.kind());
  HONE_TRY(call.budget.spend(8 * static_cast<int64_t>(value.text()->size())));
  return TemplateValue(character_count(value.text()->bytes()));
}

Made default_filter(const FilterCall& call) {
  const bool is_missing = call.flag(1) ? !call.value.is_true() : call.value.is_undefined();
  if (!is_missing) return call.value;
  return call.given[0] == nullptr ? TemplateValue::of_text("") : *call.given[0];
}

// "a.b" or a number names a member of each item.
Made attribute_of(const TemplateValue& item, const TemplateValue& attribute,
                  TemplateBudget& budget) {
  if (attribute.text() == nullptr) return item_of(item, attribute, budget);
  TemplateValue found = item;
  for (const std::string_view part : split(attribute.text()->bytes(), '.')) {
    const Result<int64_t> number = parse_int(part);
    Made next =
        number.ok() ? item_of(found, TemplateValue(*number), budget) : member_of(found, part);
    found = HONE_TRY(std::move(next));
  }
  return found;
}

Made join_filter(const FilterCall& call) {
  const MarkedText separator = HONE_TRY(call.text(0, ""));
  MarkedText made;
  bool is_first = true;
  for (TemplateValue item : HONE_TRY(items_of(call.value, call.budget))) {
    if (call.given[1] != nullptr && !call.given[1]->is_none())
      item = HONE_TRY(attribute_of(item, *call.given[1], call.budget));
    if (!std::exchange(is_first, false)) made.append(separator);
    HONE_TRY(call.budget.spend(static_cast<int64_t>(separator.size())));
    HONE_TRY(append_text(made, item, call.budget));
  }
  return TemplateValue::of_text(std::move(made));
}

Made replace_filter(const FilterCall& call) {
  const MarkedText text = HONE_TRY(text_of(call.value, call.budget));
  const MarkedText from = HONE_TRY(call.text(0, "")), to = HONE_TRY(call.text(1, ""));
  HONE_TRY(call.budget.spend(static_cast<int64_t>(text.size() * (to.size() + 1))));
  return TemplateValue::of_text(replaced(text, from.bytes(), to,
                                         HONE_TRY(call.integer(2)).value_or(-1)));
}

Made int_filter(const FilterCall& call) {
  if (call.value.is_undefined()) return bad_input("an undefined value is no integer");
  if (const std::optional<int64_t> number = call.value.integer()) return TemplateValue(*number);
  if (const double* const number = call.value.get<double>()) {
    if (std::abs(*number) < 9e18) return TemplateValue(static_cast<int64_t>(*number));
    return unsupported("a number is beyond 64 bits");
  }
  if (const MarkedText* const text = call.value.text()) {
    if (const Result<int64_t> number = parse_int(trim(text->bytes())); number.ok())
      return TemplateValue(*number);
    const Result<double> real = parse_double(trim(text->bytes()));
    if (real.ok() && std::abs(*real) < 9e18) return TemplateValue(static_cast<int64_t>(*real));
  }
  return call.given[0] == nullptr ? TemplateValue(int64_t{0}) : *call.given[0];
}

Made float_filter(const FilterCall& call) {
  if (call.value.is_undefined()) return bad_input("an undefined value is no number");
  if (const std::optional<double> number = call.value.real()) return TemplateValue(*number);
  if (const MarkedText* const text = call.value.text())
    if (const Result<double> real = parse_double(trim(text->bytes())); real.ok())
      return TemplateValue(*real);
  return call.given[0] == nullptr ? TemplateValue(0.0) : *call.given[0];
}

Made abs_filter(const FilterCall& call) {
  if (const double* const number = call.value.get<double>())
    return TemplateValue(std::abs(*number));
  const std::optional<int64_t> number = call.value.integer();
  if (!number) return bad_input("{} has no absolute value", call.value.kind());
  if (*number == INT64_MIN) return unsupported("a number is beyond 64 bits");
  return TemplateValue(*number < 0 ? -*number : *number);
}

Made end_filter(const FilterCall& call, bool is_first) {
  const TemplateValue::List items = HONE_TRY(items_of(call.value, call.budget));
  if (items.empty()) return TemplateValue(TemplateValue::Undefined{"an item"});
  return is_first ? items.front() : items.back();
}

Made reverse_filter(const FilterCall& call) {
  TemplateValue::List items = HONE_TRY(items_of(call.value, call.budget));
  std::ranges::reverse(items);
  if (call.value.text() == nullptr) return TemplateValue::of_list(std::move(items));
  MarkedText made;
  for (const TemplateValue& one : items) made.append(*one.text());
  return TemplateValue::of_text(std::move(made));
}

Made json_filter(const FilterCall& call) {
  if (call.given[2] != nullptr && !call.given[2]->is_none())
    return unsupported("hone does not know the separators of tojson");
  const std::optional<int64_t> indent = HONE_TRY(call.integer(1));
  constexpr int64_t kMostIndent = 64;
  if (indent && (*indent < 0 || *indent > kMostIndent))
    return unsupported("tojson indents by {}; 0 to {} are possible", *indent, kMostIndent);
  MarkedText made;
  HONE_TRY(append_json(made, call.value,
                       {.indent = indent, .ascii = call.flag(0), .sorted = call.flag(3)},
                       call.budget));
  return TemplateValue::of_text(std::move(made));
}

Made pairs_of(const TemplateValue::Dict& dict) {
  TemplateValue::List items;
  for (const auto& [key, value] : dict)
    items.push_back(HONE_TRY(TemplateValue::of_list({TemplateValue::of_text(key), value}, true)));
  return TemplateValue::of_list(std::move(items));
}

Made items_filter(const FilterCall& call) {
  if (call.value.is_undefined()) return TemplateValue::of_list({});
  if (call.value.dict() == nullptr) return bad_input("{} has no keys", call.value.kind());
  HONE_TRY(call.budget.spend(TemplateBudget::kItem * std::ssize(*call.value.dict())));
  return pairs_of(*call.value.dict());
}

// The order of two texts, or of two numbers.
int order_of_keys(const TemplateValue& a, const TemplateValue& b) {
  if (a.text() != nullptr) return a.text()->bytes().compare(b.text()->bytes());
  return *a.real() < *b.real() ? -1 : *a.real() > *b.real() ? 1 : 0;
}

// Numbers or texts; texts without regard to the case of letters, unless `is_exact`.
Result<TemplateValue::List> sorted_by(TemplateValue::List items, const TemplateValue* attribute,
                                      bool is_exact, bool is_reversed, TemplateBudget& budget) {
  struct Keyed {
    TemplateValue key;
    size_t at;
  };
  std::vector<Keyed> keys;
  for (size_t i = 0; i < items.size(); ++i) {
    TemplateValue key = items[i];
    const bool is_member = attribute != nullptr && !attribute->is_none();
    if (is_member) key = HONE_TRY(attribute_of(key, *attribute, budget));
    if (key.text() != nullptr && !is_exact) key = TemplateValue::of_text(lower_case(*key.text()));
    const bool fits = i == 0 || (key.text() != nullptr && keys[0].key.text() != nullptr) ||
                      (key.is_number() && keys[0].key.is_number());
    if (!fits || (key.text() == nullptr && !key.is_number()) || std::isnan(key.real().value_or(0)))
      return unsupported("hone sorts texts or numbers, not {}", key.kind());
    keys.push_back({std::move(key), i});
  }
  int64_t size = 0;
  for (const Keyed& one : keys)
    size += TemplateBudget::kItem + (one.key.text() ? std::ssize(one.key.text()->bytes()) : 0);
  HONE_TRY(budget.spend(size * 32));  // for at most 2^32 items
  // Equal ones stay in order, also where the order is reversed.
  std::ranges::sort(keys, [&](const Keyed& a, const Keyed& b) {
    const Keyed &low = is_reversed ? b : a, &high = is_reversed ? a : b;
    const int order = order_of_keys(low.key, high.key);
    return order != 0 ? order < 0 : a.at < b.at;
  });
  TemplateValue::List made;
  for (const Keyed& one : keys) made.push_back(items[one.at]);
  return made;
}

Made sort_filter(const FilterCall& call) {
  return TemplateValue::of_list(
      HONE_TRY(sorted_by(HONE_TRY(items_of(call.value, call.budget)), call.given[2], call.flag(1),
                         call.flag(0), call.budget)));
}

Made dictsort_filter(const FilterCall& call) {
  const TemplateValue pairs = HONE_TRY(items_filter(call));
  const TemplateValue key(int64_t{0});
  return TemplateValue::of_list(
      HONE_TRY(sorted_by(*pairs.list(), &key, call.flag(0), false, call.budget)));
}

Made unique_filter(const FilterCall& call) {
  TemplateValue::List made, seen;
  for (const TemplateValue& item : HONE_TRY(items_of(call.value, call.budget))) {
    TemplateValue key = item;
    if (key.text() != nullptr) key = TemplateValue::of_text(lower_case(*key.text()));
    bool is_new = true;
    for (const TemplateValue& other : seen)
      if (HONE_TRY(equal_values(key, other, call.budget))) is_new = false;
    if (!is_new) continue;
    seen.push_back(std::move(key));
    made.push_back(item);
  }
  return TemplateValue::of_list(std::move(made));
}

// The name of a filter or test, which comes first, and what follows it.
Result<std::string> first_name(const FilterCall& call, size_t at) {
  if (call.all.items.size() <= at || call.all.items[at].text() == nullptr)
    return unsupported("hone knows no such use of this filter")
        .with_hint("the name of a filter, a test or an attribute is given in quotes");
  return std::string(call.all.items[at].text()->bytes());
}

Made map_filter(const FilterCall& call) {
  TemplateValue::List made;
  const TemplateValue* const attribute = field_of(call.all.named, "attribute");
  TemplateArguments rest;
  std::string name;
  if (attribute == nullptr) {
    name = HONE_TRY(first_name(call, 0));
    rest.items.assign(call.all.items.begin() + 1, call.all.items.end());
    rest.named = call.all.named;
  }
  const TemplateValue* const fallback = field_of(call.all.named, "default");
  for (const TemplateValue& item : HONE_TRY(items_of(call.value, call.budget))) {
    if (attribute == nullptr) {
      made.push_back(HONE_TRY(apply_filter(name, item, rest, call.budget)));
      continue;
    }
    TemplateValue found = HONE_TRY(attribute_of(item, *attribute, call.budget));
    made.push_back(found.is_undefined() && fallback != nullptr ? *fallback : std::move(found));
  }
  return TemplateValue::of_list(std::move(made));
}

// Keeps the items for which the test says `wanted`. With `by_attribute` a member is tested.
Made select_filter(const FilterCall& call, bool by_attribute, bool wanted) {
  if (!call.all.named.empty()) return unsupported("hone knows no arguments by name of this filter");
  const size_t skipped = by_attribute ? 1 : 0;
  if (by_attribute) (void)HONE_TRY(first_name(call, 0));
  const bool has_test = call.all.items.size() > skipped;
  const std::string test = has_test ? HONE_TRY(first_name(call, skipped)) : "";
  const std::span<const TemplateValue> rest =
      std::span(call.all.items).subspan(has_test ? skipped + 1 : skipped);
  TemplateValue::List made;
  for (const TemplateValue& item : HONE_TRY(items_of(call.value, call.budget))) {
    const TemplateValue tested =
        by_attribute ? HONE_TRY(attribute_of(item, call.all.items[0], call.budget)) : item;
    const Result<bool> holds =
        has_test ? apply_test(test, tested, rest, call.budget) : Result<bool>(tested.is_true());
    if (!holds.ok()) return holds.error();
    if (*holds == wanted) made.push_back(item);
  }
  return TemplateValue::of_list(std::move(made));
}

Made extreme_filter(const FilterCall& call, int sign) {
  const TemplateValue::List items = HONE_TRY(items_of(call.value, call.budget));
  if (items.empty()) return TemplateValue(TemplateValue::Undefined{"an item"});
  const TemplateValue* best = &items[0];
  for (const TemplateValue& one : items)
    if (HONE_TRY(compare_values(one, *best, call.budget)) * sign > 0) best = &one;
  return *best;
}

Made indent_filter(const FilterCall& call) {
  std::string blanks(4, ' ');
  if (call.given[0] != nullptr && call.given[0]->text() != nullptr) {
    blanks = call.given[0]->text()->bytes();
  } else if (const std::optional<int64_t> width = HONE_TRY(call.integer(0))) {
    HONE_TRY(call.budget.spend(std::max(*width, int64_t{0})));
    blanks.assign(static_cast<size_t>(std::max(*width, int64_t{0})), ' ');
  }
  MarkedText text = HONE_TRY(text_of(call.value, call.budget));
  text.append("\n", false);  // so that a last line break has a line behind it
  const std::vector<MarkedText> lines = split_text_lines(text, false);
  MarkedText made;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) made.append("\n", false);
    const bool is_indented = i == 0 ? call.flag(1) : call.flag(2) || !lines[i].empty();
    if (is_indented) made.append(blanks, false);
    made.append(lines[i]);
    HONE_TRY(call.budget.spend(static_cast<int64_t>(blanks.size() + lines[i].size())));
  }
  return TemplateValue::of_text(std::move(made));
}

struct KnownFilter {
  std::string_view name;
  Made (*call)(const FilterCall&);
  size_t needed = 0;
  std::array<std::string_view, 4> names = {};
  bool takes_all = false;  // and looks at them itself
};
constexpr KnownFilter kKnownFilters[] = {
    {"trim", trim_filter, 0, {"chars"}},
    {"length", length_filter},
    {"count", length_filter},
    {"default", default_filter, 0, {"default_value", "boolean"}},
    {"d", default_filter, 0, {"default_value", "boolean"}},
    {"tojson", json_filter, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"upper", [](const FilterCall& c) { return of_texts(c, upper_case); }},
    {"lower", [](const FilterCall& c) { return of_texts(c, lower_case); }},
    {"capitalize", [](const FilterCall& c) { return of_texts(c, capitalized); }},
    {"string",
     [](const FilterCall& c) -> Made {
       return TemplateValue::of_text(HONE_TRY(text_of(c.value, c.budget)));
     }},
    {"safe", [](const FilterCall& c) -> Made { return c.value; }},
    {"int", int_filter, 0, {"default"}},
    {"float", float_filter, 0, {"default"}},
    {"abs", abs_filter},
    {"join", join_filter, 0, {"d", "attribute"}},
    {"replace", replace_filter, 2, {"old", "new", "count"}},
    {"indent", indent_filter, 0, {"width", "first", "blank"}},
    {"list",
     [](const FilterCall& c) -> Made {
       return TemplateValue::of_list(HONE_TRY(items_of(c.value, c.budget)));
     }},
    {"first", [](const FilterCall& c) { return end_filter(c, true); }},
    {"last", [](const FilterCall& c) { return end_filter(c, false); }},
    {"reverse", reverse_filter},
    {"items", items_filter},
    {"dictsort", dictsort_filter, 0, {"case_sensitive"}},
    {"sort", sort_filter, 0, {"reverse", "case_sensitive", "attribute"}},
    {"unique", unique_filter},
    {"map", map_filter, 0, {}, true},
    {"select", [](const FilterCall& c) { return select_filter(c, false, true); }, 0, {}, true},
    {"reject", [](const FilterCall& c) { return select_filter(c, false, false); }, 0, {}, true},
    {"selectattr", [](const FilterCall& c) { return select_filter(c, true, true); }, 0, {}, true},
    {"rejectattr", [](const FilterCall& c) { return select_filter(c, true, false); }, 0, {}, true},
    {"min", [](const FilterCall& c) { return extreme_filter(c, -1); }},
    {"max", [](const FilterCall& c) { return extreme_filter(c, 1); }}};

}  // namespace

Result<TemplateValue> apply_filter(std::string_view name, const TemplateValue& value,
                                   const TemplateArguments& arguments, TemplateBudget& budget) {
  const auto* const filter = std::ranges::find(kKnownFilters, name, &KnownFilter::name);
  if (filter == std::end(kKnownFilters)) {
    std::vector<std::string_view> known;
    for (const KnownFilter& one : kKnownFilters) known.push_back(one.name);
    return unknown_of("filter", name, known);
  }
  HONE_TRY(budget.spend(TemplateBudget::kStep));
  const auto end = std::ranges::find(filter->names, std::string_view());
  const std::span<const std::string_view> names =
      std::span(filter->names).first(static_cast<size_t>(end - filter->names.begin()));
  std::vector<const TemplateValue*> given;
  if (!filter->takes_all) given = HONE_TRY(bound_arguments(arguments, names, filter->needed));
  return filter->call({value, std::move(given), arguments, budget});
}

}  // namespace hone
