#pragma once

#include <span>

#include "language/chat/template_value.h"

// Filters, tests and methods of Jinja and Python that chat templates use.

namespace hone {

struct TemplateArguments {
  TemplateValue::List items = {};
  TemplateValue::Dict named = {};
};

// In the order of the names; null where none is given. Refused: fewer than `needed`, others, more.
Result<std::vector<const TemplateValue*>> bound_arguments(const TemplateArguments& arguments,
                                                          std::span<const std::string_view> names,
                                                          size_t needed);

Result<TemplateValue> apply_filter(std::string_view name, const TemplateValue& value,
                                   const TemplateArguments& arguments, TemplateBudget& budget);
Result<bool> apply_test(std::string_view name, const TemplateValue& value,
                        std::span<const TemplateValue> arguments, TemplateBudget& budget);
Result<TemplateValue> call_method(const TemplateValue& object, std::string_view name,
                                  const TemplateArguments& arguments, TemplateBudget& budget);

// object.name; undefined if there is none.
Result<TemplateValue> member_of(const TemplateValue& object, std::string_view name);
// object[index]; undefined if there is none.
Result<TemplateValue> item_of(const TemplateValue& object, const TemplateValue& index,
                              TemplateBudget& budget);
// object[begin:end:step], each of which may be none.
Result<TemplateValue> slice_of(const TemplateValue& object, const TemplateValue& begin,
                               const TemplateValue& end, const TemplateValue& step,
                               TemplateBudget& budget);
Result<bool> contains(const TemplateValue& all, const TemplateValue& one, TemplateBudget& budget);
// The things that a loop goes over: items of a list, keys, characters.
Result<TemplateValue::List> items_of(const TemplateValue& value, TemplateBudget& budget);
// As the filter `string` makes it.
Result<MarkedText> text_of(const TemplateValue& value, TemplateBudget& budget);

Error unknown_of(std::string_view what, std::string_view name,
                 std::span<const std::string_view> known);

}  // namespace hone
