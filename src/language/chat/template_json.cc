#include <nlohmann/json.hpp>

#include "base/text.h"
#include "language/chat/template_value.h"

namespace hone {
namespace {

using TemplateJson = nlohmann::ordered_json;

// Deeper than a value may be, so that of_list() and of_dict() say what is wrong.
constexpr int kDeepestJson = 100;

// All texts come from outside of the template.
Result<TemplateValue> value_of(const TemplateJson& json) {
  switch (json.type()) {
    case TemplateJson::value_t::null: return TemplateValue(TemplateValue::None());
    case TemplateJson::value_t::boolean: return TemplateValue(json.get<bool>());
    case TemplateJson::value_t::number_integer: return TemplateValue(json.get<int64_t>());
    case TemplateJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > INT64_MAX) return bad_input("a number is beyond 64 bits");
      return TemplateValue(json.get<int64_t>());
    case TemplateJson::value_t::number_float: return TemplateValue(json.get<double>());
    case TemplateJson::value_t::string:
      return TemplateValue::of_text(json.get_ref<const std::string&>(), true);
    case TemplateJson::value_t::array: {
      TemplateValue::List items;
      for (const TemplateJson& one : json) items.push_back(HONE_TRY(value_of(one)));
      return TemplateValue::of_list(std::move(items));
    }
    case TemplateJson::value_t::object: {
      TemplateValue::Dict fields;
      for (const auto& [name, one] : json.items()) {
        TemplateValue value = HONE_TRY(value_of(one));
        fields.emplace_back(name, std::move(value));
      }
      return TemplateValue::of_dict(std::move(fields));
    }
    default: return bad_input("it is not JSON");
  }
}

}  // namespace

Result<TemplateValue> template_value_of_json(std::string_view json) {
  bool is_deep = false;
  const auto check = [&](int depth, TemplateJson::parse_event_t, TemplateJson&) {
    is_deep = is_deep || depth > kDeepestJson;
    return !is_deep;
  };
  const TemplateJson parsed = TemplateJson::parse(json, check, false);
  if (is_deep) return over_limit("the JSON is nested deeper than {}", kDeepestJson);
  if (parsed.is_discarded()) return bad_input("it is not JSON");
  return value_of(parsed);
}

}  // namespace hone
