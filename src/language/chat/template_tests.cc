#include <algorithm>

#include "base/text.h"
#include "language/chat/template_functions.h"
#include "language/chat/text_methods.h"

namespace hone {
namespace {

using GivenValues = std::span<const TemplateValue>;

Result<int64_t> number_for_test(const TemplateValue& value) {
  const std::optional<int64_t> number = value.integer();
  if (!number) return bad_input("{} is tested where an integer is needed", value.kind());
  return *number;
}

template <class Is>
Result<bool> ordered(const TemplateValue& value, GivenValues given, TemplateBudget& budget,
                     const Is& is) {
  return is(HONE_TRY(compare_values(value, given[0], budget)));
}

struct KnownTest {
  std::string_view name;
  size_t arguments;
  Result<bool> (*call)(const TemplateValue&, GivenValues, TemplateBudget&);
};
#define HONE_TEMPLATE_TEST(name, arguments, ...)                               \
  {name, arguments,                                                            \
   []([[maybe_unused]] const TemplateValue& v, [[maybe_unused]] GivenValues a, \
      [[maybe_unused]] TemplateBudget& b) -> Result<bool> { return __VA_ARGS__; }}
constexpr KnownTest kKnownTests[] = {
    HONE_TEMPLATE_TEST("defined", 0, !v.is_undefined()),
    HONE_TEMPLATE_TEST("undefined", 0, v.is_undefined()),
    HONE_TEMPLATE_TEST("none", 0, v.is_none()),
    HONE_TEMPLATE_TEST("string", 0, v.text() != nullptr),
    HONE_TEMPLATE_TEST("number", 0, v.is_number()),
    HONE_TEMPLATE_TEST("integer", 0, v.get<int64_t>() != nullptr),
    HONE_TEMPLATE_TEST("float", 0, v.get<double>() != nullptr),
    HONE_TEMPLATE_TEST("boolean", 0, v.get<bool>() != nullptr),
    HONE_TEMPLATE_TEST("true", 0, v.get<bool>() != nullptr && *v.get<bool>()),
    HONE_TEMPLATE_TEST("false", 0, v.get<bool>() != nullptr && !*v.get<bool>()),
    HONE_TEMPLATE_TEST("mapping", 0, v.dict() != nullptr),
    HONE_TEMPLATE_TEST(
        "sequence", 0,
        v.text() != nullptr || v.list() != nullptr || v.dict() != nullptr || v.is_undefined()),
    HONE_TEMPLATE_TEST(
        "iterable", 0,
        v.text() != nullptr || v.list() != nullptr || v.dict() != nullptr || v.is_undefined()),
    HONE_TEMPLATE_TEST("callable", 0, v.get<TemplateValue::Function>() != nullptr),
    HONE_TEMPLATE_TEST("odd", 0, HONE_TRY(number_for_test(v)) % 2 != 0),
    HONE_TEMPLATE_TEST("even", 0, HONE_TRY(number_for_test(v)) % 2 == 0),
    {"divisibleby", 1,
     [](const TemplateValue& v, GivenValues a, TemplateBudget&) -> Result<bool> {
       const int64_t by = HONE_TRY(number_for_test(a[0]));
       if (by == 0) return bad_input("a number is divided by 0");
       return by == -1 || HONE_TRY(number_for_test(v)) % by == 0;
     }},
    HONE_TEMPLATE_TEST("lower", 0, lower_case(HONE_TRY(text_of(v, b))).bytes() ==
                                       HONE_TRY(text_of(v, b)).bytes()),
    HONE_TEMPLATE_TEST("upper", 0, upper_case(HONE_TRY(text_of(v, b))).bytes() ==
                                       HONE_TRY(text_of(v, b)).bytes()),
    HONE_TEMPLATE_TEST("in", 1, contains(a[0], v, b)),
    HONE_TEMPLATE_TEST("eq", 1, equal_values(v, a[0], b)),
    HONE_TEMPLATE_TEST("equalto", 1, equal_values(v, a[0], b)),
    HONE_TEMPLATE_TEST("==", 1, equal_values(v, a[0], b)),
    HONE_TEMPLATE_TEST("ne", 1, !HONE_TRY(equal_values(v, a[0], b))),
    HONE_TEMPLATE_TEST("!=", 1, !HONE_TRY(equal_values(v, a[0], b))),
    HONE_TEMPLATE_TEST("lt", 1, ordered(v, a, b, [](int o) { return o < 0; })),
    HONE_TEMPLATE_TEST("le", 1, ordered(v, a, b, [](int o) { return o <= 0; })),
    HONE_TEMPLATE_TEST("gt", 1, ordered(v, a, b, [](int o) { return o > 0; })),
    HONE_TEMPLATE_TEST("ge", 1, ordered(v, a, b, [](int o) { return o >= 0; }))};
#undef HONE_TEMPLATE_TEST

}  // namespace

Result<bool> apply_test(std::string_view name, const TemplateValue& value,
                        std::span<const TemplateValue> arguments, TemplateBudget& budget) {
  const auto* const test = std::ranges::find(kKnownTests, name, &KnownTest::name);
  if (test == std::end(kKnownTests)) {
    std::vector<std::string_view> known;
    for (const KnownTest& one : kKnownTests) known.push_back(one.name);
    return unknown_of("test", name, known);
  }
  if (arguments.size() != test->arguments)
    return bad_input("the test '{}' has {} arguments; it takes {}", name, arguments.size(),
                     test->arguments);
  return test->call(value, arguments, budget);
}

}  // namespace hone
