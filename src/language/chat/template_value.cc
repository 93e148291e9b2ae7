#include "language/chat/template_value.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr int64_t kDeepestValue = 64;

Error too_deep() { return over_limit("a value is nested deeper than {}", kDeepestValue); }

}  // namespace

Status TemplateBudget::spend(int64_t work) {
  if (work > left_) return over_limit("the template does too much work");
  left_ -= work;
  return {};
}

TemplateValue TemplateValue::of_text(MarkedText text) {
  TemplateValue made;
  made.value_ = std::make_shared<const MarkedText>(std::move(text));
  return made;
}

Result<TemplateValue> TemplateValue::of_list(List items, bool is_tuple) {
  int64_t depth = 0;
  for (const TemplateValue& one : items) depth = std::max(depth, one.depth());
  if (depth >= kDeepestValue) return too_deep();
  TemplateValue made;
  made.value_ = std::make_shared<const Held<List>>(std::move(items), depth + 1, is_tuple);
  return made;
}

Result<TemplateValue> TemplateValue::of_dict(Dict fields) {
  int64_t depth = 0;
  for (const auto& [name, value] : fields) depth = std::max(depth, value.depth());
  if (depth >= kDeepestValue) return too_deep();
  TemplateValue made;
  made.value_ = std::make_shared<const Held<Dict>>(std::move(fields), depth + 1);
  return made;
}

int64_t TemplateValue::depth() const {
  if (const Items* const items = get<Items>()) return (*items)->depth;
  if (const Fields* const fields = get<Fields>()) return (*fields)->depth;
  return 0;
}

bool TemplateValue::is_number() const { return real().has_value(); }

std::optional<int64_t> TemplateValue::integer() const {
  if (const bool* const flag = get<bool>()) return *flag ? 1 : 0;
  if (const int64_t* const number = get<int64_t>()) return *number;
  return std::nullopt;
}

std::optional<double> TemplateValue::real() const {
  if (const double* const number = get<double>()) return *number;
  if (const std::optional<int64_t> number = integer()) return static_cast<double>(*number);
  return std::nullopt;
}

bool TemplateValue::is_true() const {
  if (is_undefined() || is_none()) return false;
  if (const std::optional<double> number = real()) return *number != 0;
  if (const MarkedText* const some = text()) return !some->empty();
  if (const List* const items = list()) return !items->empty();
  if (const Dict* const fields = dict()) return !fields->empty();
  return true;
}

std::string_view TemplateValue::kind() const {
  constexpr std::string_view kKinds[] = {"undefined",  "none",        "a flag", "an integer",
                                         "a number",   "a text",      "a list", "a dictionary",
                                         "a function", "a namespace", "a loop"};
  return kKinds[value_.index()];
}

const TemplateValue* field_of(const TemplateValue::Dict& dict, std::string_view name) {
  const auto found =
      std::ranges::find(dict, name, [](const auto& one) -> std::string_view { return one.first; });
  return found == dict.end() ? nullptr : &found->second;
}

void set_field(TemplateValue::Dict& dict, std::string_view name, TemplateValue value) {
  for (auto& [known, old] : dict)
    if (known == name) {
      old = std::move(value);
      return;
    }
  dict.emplace_back(name, std::move(value));
}

// ---- Comparing
// ------------------------------------------------------------------------------------

namespace {

Result<bool> equal_lists(const TemplateValue::List& a, const TemplateValue::List& b,
                         TemplateBudget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!HONE_TRY(equal_values(a[i], b[i], budget))) return false;
  return true;
}

Result<bool> equal_dicts(const TemplateValue::Dict& a, const TemplateValue::Dict& b,
                         TemplateBudget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    HONE_TRY(budget.spend(std::ssize(b)));
    const TemplateValue* const other = field_of(b, name);
    if (other == nullptr || !HONE_TRY(equal_values(value, *other, budget))) return false;
  }
  return true;
}

int order_of(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

Result<bool> equal_values(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget) {
  HONE_TRY(budget.spend(TemplateBudget::kItem));
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.real() && b.real()) return *a.real() == *b.real();
  if (a.text() != nullptr && b.text() != nullptr) {
    HONE_TRY(budget.spend(static_cast<int64_t>(std::min(a.text()->size(), b.text()->size()))));
    return a.text()->bytes() == b.text()->bytes();
  }
  using Items = TemplateValue::Items;
  if (const Items *x = a.get<Items>(), *y = b.get<Items>(); x != nullptr && y != nullptr) {
    if ((*x)->is_tuple != (*y)->is_tuple) return false;
    return equal_lists((*x)->items, (*y)->items, budget);
  }
  if (a.dict() != nullptr && b.dict() != nullptr) return equal_dicts(*a.dict(), *b.dict(), budget);
  if (auto *const *x = a.get<TemplateNamespace*>(), *const *y = b.get<TemplateNamespace*>();
      x != nullptr && y != nullptr)
    return *x == *y;
  if (const auto *x = a.get<TemplateValue::Function>(), *y = b.get<TemplateValue::Function>();
      x != nullptr && y != nullptr)
    return x->macro == y->macro && x->name == y->name;
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Result<int> compare_values(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget) {
  HONE_TRY(budget.spend(TemplateBudget::kItem));
  if (a.integer() && b.integer())
    return *a.integer() < *b.integer() ? -1 : *a.integer() > *b.integer() ? 1 : 0;
  if (a.real() && b.real()) return order_of(*a.real(), *b.real());
  if (a.text() != nullptr && b.text() != nullptr) {
    HONE_TRY(budget.spend(static_cast<int64_t>(std::min(a.text()->size(), b.text()->size()))));
    return a.text()->bytes().compare(b.text()->bytes());
  }
  if (a.list() == nullptr || b.list() == nullptr)
    return bad_input("{} and {} have no order", a.kind(), b.kind());
  const TemplateValue::List &x = *a.list(), &y = *b.list();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (HONE_TRY(equal_values(x[i], y[i], budget))) continue;
    return compare_values(x[i], y[i], budget);
  }
  return order_of(static_cast<double>(x.size()), static_cast<double>(y.size()));
}

}  // namespace hone
