#include "language/chat/template_numbers.h"

#include <cmath>

#include "base/checked_math.h"

namespace hone {
namespace {

using Made = Result<TemplateValue>;

Error beyond() { return unsupported("an integer is beyond 64 bits"); }

Made integer_or(std::optional<int64_t> value) {
  if (!value) return beyond();
  return TemplateValue(*value);
}

Made power_of(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return bad_input("a number is divided by 0");
    return TemplateValue(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t made = 1;
  // Other bases than these leave 64 bits within 63 steps.
  if (base == 0 || base == 1 || base == -1) exponent = exponent == 0 ? 0 : 2 - exponent % 2;
  for (; exponent > 0; --exponent) {
    const std::optional<int64_t> next = checked_mul(made, base);
    if (!next) return beyond();
    made = *next;
  }
  return TemplateValue(made);
}

Made of_integers(std::string_view sign, int64_t a, int64_t b) {
  if (sign == "+") return integer_or(checked_add(a, b));
  if (sign == "-") return integer_or(checked_sub(a, b));
  if (sign == "*") return integer_or(checked_mul(a, b));
  if (sign == "**") return power_of(a, b);
  if (b == 0) return bad_input("a number is divided by 0");
  if (sign == "/") return TemplateValue(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) return sign == "%" ? TemplateValue(int64_t{0}) : integer_or(checked_sub(0, a));
  const int64_t quotient = floor_div(a, b);
  return TemplateValue(sign == "//" ? quotient : a - quotient * b);
}

Made of_reals(std::string_view sign, double a, double b) {
  if (sign == "+") return TemplateValue(a + b);
  if (sign == "-") return TemplateValue(a - b);
  if (sign == "*") return TemplateValue(a * b);
  if (sign == "**") return TemplateValue(std::pow(a, b));
  if (b == 0) return bad_input("a number is divided by 0");
  if (sign == "/") return TemplateValue(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (sign == "%") return TemplateValue(rest);
  return TemplateValue(std::round((a - rest) / b));
}

// 'ab' * 3 and [1] * 3.
Made repeated(const TemplateValue& value, int64_t times, TemplateBudget& budget) {
  times = std::max(times, int64_t{0});
  const int64_t size = value.text() != nullptr ? std::ssize(value.text()->bytes())
                                               : TemplateBudget::kItem * std::ssize(*value.list());
  const std::optional<int64_t> work = checked_mul(size + 1, times);
  HONE_TRY(budget.spend(work.value_or(INT64_MAX)));
  if (value.text() != nullptr) {
    MarkedText made;
    for (int64_t i = 0; i < times; ++i) made.append(*value.text());
    return TemplateValue::of_text(std::move(made));
  }
  TemplateValue::List made;
  for (int64_t i = 0; i < times; ++i)
    made.insert(made.end(), value.list()->begin(), value.list()->end());
  return TemplateValue::of_list(std::move(made), (*value.get<TemplateValue::Items>())->is_tuple);
}

Made joined_lists(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget) {
  const bool is_tuple = (*a.get<TemplateValue::Items>())->is_tuple;
  if (is_tuple != (*b.get<TemplateValue::Items>())->is_tuple)
    return bad_input("a list and a tuple cannot be added");
  HONE_TRY(budget.spend(TemplateBudget::kItem * (std::ssize(*a.list()) + std::ssize(*b.list()))));
  TemplateValue::List made = *a.list();
  made.insert(made.end(), b.list()->begin(), b.list()->end());
  return TemplateValue::of_list(std::move(made), is_tuple);
}

}  // namespace

Result<TemplateValue> binary_value(std::string_view sign, const TemplateValue& a,
                                   const TemplateValue& b, TemplateBudget& budget) {
  if (a.integer() && b.integer()) return of_integers(sign, *a.integer(), *b.integer());
  if (a.real() && b.real()) return of_reals(sign, *a.real(), *b.real());
  if (sign == "+" && a.text() != nullptr && b.text() != nullptr) {
    HONE_TRY(budget.spend(static_cast<int64_t>(a.text()->size() + b.text()->size())));
    MarkedText made = *a.text();
    made.append(*b.text());
    return TemplateValue::of_text(std::move(made));
  }
  if (sign == "+" && a.list() != nullptr && b.list() != nullptr) return joined_lists(a, b, budget);
  const auto is_repeatable = [](const TemplateValue& one) {
    return one.text() != nullptr || one.list() != nullptr;
  };
  if (sign == "*" && is_repeatable(a) && b.integer()) return repeated(a, *b.integer(), budget);
  if (sign == "*" && is_repeatable(b) && a.integer()) return repeated(b, *a.integer(), budget);
  if (sign == "%" && a.text() != nullptr)
    return unsupported("hone does not know texts with '%' in them to fill");
  return bad_input("'{}' takes no {} and {}", sign, a.kind(), b.kind());
}

Result<TemplateValue> negative_value(const TemplateValue& a) {
  if (a.integer()) return integer_or(checked_sub(0, *a.integer()));
  if (a.real()) return TemplateValue(-*a.real());
  return bad_input("{} has no negative", a.kind());
}

}  // namespace hone
