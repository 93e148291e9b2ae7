#include <algorithm>

#include "base/text.h"
#include "language/chat/template_functions.h"
#include "language/chat/template_run.h"
#include "language/chat/text_methods.h"

namespace hone {
namespace {

constexpr std::string_view kMember = "a member";

Result<TemplateValue> loop_member(const TemplateLoop& loop, std::string_view name) {
  const auto count = std::ssize(loop.items);
  const auto at = [&](int64_t i) { return loop.items[static_cast<size_t>(i)]; };
  if (name == "index") return TemplateValue(loop.index + 1);
  if (name == "index0") return TemplateValue(loop.index);
  if (name == "revindex") return TemplateValue(count - loop.index);
  if (name == "revindex0") return TemplateValue(count - loop.index - 1);
  if (name == "first") return TemplateValue(loop.index == 0);
  if (name == "last") return TemplateValue(loop.index + 1 == count);
  if (name == "length") return TemplateValue(count);
  if (name == "depth") return TemplateValue(int64_t{1});
  if (name == "depth0") return TemplateValue(int64_t{0});
  if (name == "previtem" && loop.index > 0) return at(loop.index - 1);
  if (name == "nextitem" && loop.index + 1 < count) return at(loop.index + 1);
  if (name == "previtem" || name == "nextitem")
    return TemplateValue(TemplateValue::Undefined{"a neighbour in the loop"});
  return unsupported("hone does not know loop.{}", excerpt(name));
}

// Python's rule: below 0 counts from the end.
std::optional<size_t> place_of(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

// The places that a slice of `size` items takes, in order.
Result<std::vector<size_t>> slice_places(int64_t size, const TemplateValue& begin,
                                         const TemplateValue& end, const TemplateValue& step) {
  const auto given = [](const TemplateValue& one) -> Result<std::optional<int64_t>> {
    if (one.is_none()) return std::optional<int64_t>();
    if (!one.integer()) return bad_input("{} is no place of a slice", one.kind());
    return one.integer();
  };
  const int64_t by = HONE_TRY(given(step)).value_or(1);
  if (by == 0) return bad_input("the step of a slice is 0");
  const auto clamped = [&](std::optional<int64_t> place, int64_t fallback) {
    if (!place) return fallback;
    int64_t at = *place;
    if (at < 0) at += size;
    return by > 0 ? std::clamp(at, int64_t{0}, size) : std::clamp(at, int64_t{-1}, size - 1);
  };
  const int64_t first = clamped(HONE_TRY(given(begin)), by > 0 ? 0 : size - 1);
  const int64_t last = clamped(HONE_TRY(given(end)), by > 0 ? size : -1);
  std::vector<size_t> places;
  // A step of more than the size takes one item.
  const int64_t stride = std::clamp(by, -size - 1, size + 1);
  for (int64_t at = first; by > 0 ? at < last : at > last; at += stride)
    places.push_back(static_cast<size_t>(at));
  return places;
}

MarkedText character_at(const MarkedText& text, const std::vector<size_t>& starts, size_t at) {
  return text.part(starts[at], starts[at + 1] - starts[at]);
}

}  // namespace

Result<TemplateValue> member_of(const TemplateValue& object, std::string_view name) {
  if (const auto* const undefined = object.get<TemplateValue::Undefined>())
    return bad_input("{} is undefined, so it has no member {}", excerpt(undefined->name),
                     hone::quoted(excerpt(name)));
  const TemplateValue* found = nullptr;
  if (const TemplateValue::Dict* const dict = object.dict()) found = field_of(*dict, name);
  if (auto* const* const space = object.get<TemplateNamespace*>())
    found = field_of((*space)->fields, name);
  if (const auto* const loop = object.get<const TemplateLoop*>()) return loop_member(**loop, name);
  if (found != nullptr) return *found;
  return TemplateValue(TemplateValue::Undefined{kMember});
}

Result<TemplateValue> item_of(const TemplateValue& object, const TemplateValue& index,
                              TemplateBudget& budget) {
  if (const MarkedText* const name = index.text()) {
    HONE_TRY(budget.spend(static_cast<int64_t>(name->size())));
    return member_of(object, name->bytes());
  }
  if (object.is_undefined()) return member_of(object, "[]");
  const std::optional<int64_t> number = index.integer();
  if (const TemplateValue::List* const list = object.list(); list != nullptr && number) {
    const std::optional<size_t> at = place_of(*number, list->size());
    return at ? (*list)[*at] : TemplateValue(TemplateValue::Undefined{"an item"});
  }
  if (const MarkedText* const text = object.text(); text != nullptr && number) {
    HONE_TRY(budget.spend(static_cast<int64_t>(text->size())));
    const std::vector<size_t> starts = character_starts(text->bytes());
    const std::optional<size_t> at = place_of(*number, starts.size() - 1);
    if (at) return TemplateValue::of_text(character_at(*text, starts, *at));
    return TemplateValue(TemplateValue::Undefined{"a character"});
  }
  return TemplateValue(TemplateValue::Undefined{kMember});
}

Result<TemplateValue> slice_of(const TemplateValue& object, const TemplateValue& begin,
                               const TemplateValue& end, const TemplateValue& step,
                               TemplateBudget& budget) {
  if (const TemplateValue::List* const list = object.list()) {
    HONE_TRY(budget.spend(TemplateBudget::kItem * std::ssize(*list)));
    TemplateValue::List items;
    for (const size_t at : HONE_TRY(slice_places(std::ssize(*list), begin, end, step)))
      items.push_back((*list)[at]);
    return TemplateValue::of_list(std::move(items),
                                  (*object.get<TemplateValue::Items>())->is_tuple);
  }
  const MarkedText* const text = object.text();
  if (text == nullptr) return bad_input("{} cannot be sliced", object.kind());
  HONE_TRY(budget.spend(8 * static_cast<int64_t>(text->size())));
  const std::vector<size_t> starts = character_starts(text->bytes());
  MarkedText made;
  for (const size_t at : HONE_TRY(slice_places(std::ssize(starts) - 1, begin, end, step)))
    made.append(*text, starts[at], starts[at + 1] - starts[at]);
  return TemplateValue::of_text(std::move(made));
}

Result<bool> contains(const TemplateValue& all, const TemplateValue& one, TemplateBudget& budget) {
  if (const MarkedText* const text = all.text()) {
    if (one.text() == nullptr) return bad_input("a text cannot contain {}", one.kind());
    HONE_TRY(budget.spend(static_cast<int64_t>(text->size() + one.text()->size())));
    return find_text(text->bytes(), one.text()->bytes()).has_value();
  }
  if (const TemplateValue::Dict* const dict = all.dict()) {
    HONE_TRY(budget.spend(TemplateBudget::kItem * std::ssize(*dict)));
    return one.text() != nullptr && field_of(*dict, one.text()->bytes()) != nullptr;
  }
  if (all.is_undefined()) return false;
  if (all.list() == nullptr) return bad_input("{} contains nothing", all.kind());
  for (const TemplateValue& item : *all.list())
    if (HONE_TRY(equal_values(item, one, budget))) return true;
  return false;
}

Result<TemplateValue::List> items_of(const TemplateValue& value, TemplateBudget& budget) {
  if (value.is_undefined()) return TemplateValue::List();
  if (const TemplateValue::List* const list = value.list()) {
    HONE_TRY(budget.spend(TemplateBudget::kItem * std::ssize(*list)));
    return *list;
  }
  TemplateValue::List items;
  if (const TemplateValue::Dict* const dict = value.dict()) {
    HONE_TRY(budget.spend(TemplateBudget::kItem * std::ssize(*dict)));
    for (const auto& [name, one] : *dict) items.push_back(TemplateValue::of_text(name));
    return items;
  }
  const MarkedText* const text = value.text();
  if (text == nullptr) return bad_input("{} has no items", value.kind());
  HONE_TRY(budget.spend(TemplateBudget::kItem * static_cast<int64_t>(text->size())));
  const std::vector<size_t> starts = character_starts(text->bytes());
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    items.push_back(TemplateValue::of_text(character_at(*text, starts, i)));
  return items;
}

Result<MarkedText> text_of(const TemplateValue& value, TemplateBudget& budget) {
  MarkedText made;
  HONE_TRY(append_text(made, value, budget));
  return made;
}

Error unknown_of(std::string_view what, std::string_view name,
                 std::span<const std::string_view> known) {
  return unsupported("hone does not know the {} {}", what, hone::quoted(excerpt(name)))
      .with_hint(fmt::format("it knows {}", join(known, ", ")));
}

Result<std::vector<const TemplateValue*>> bound_arguments(const TemplateArguments& arguments,
                                                          std::span<const std::string_view> names,
                                                          size_t needed) {
  std::vector<const TemplateValue*> bound(names.size(), nullptr);
  if (arguments.items.size() > names.size())
    return bad_input("{} arguments are given; it takes {}", arguments.items.size(), names.size());
  for (size_t i = 0; i < arguments.items.size(); ++i) bound[i] = &arguments.items[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      return unsupported("hone knows no argument {} of it", hone::quoted(excerpt(name)));
    const TemplateValue*& place = bound[static_cast<size_t>(found - names.begin())];
    if (place != nullptr) return bad_input("the argument '{}' is given twice", name);
    place = &value;
  }
  for (size_t i = 0; i < needed; ++i)
    if (bound[i] == nullptr) return bad_input("the argument '{}' is missing", names[i]);
  return bound;
}

}  // namespace hone
