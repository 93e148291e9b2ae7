#include "log/json_fields.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "log/hash_text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostFields = 256;  // of an object

// Brackets inside of each other: a line has three, and the parser goes as deep as it is told.
bool is_too_deep(std::string_view line) {
  int depth = 0;
  bool is_text = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (is_text && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      is_text = !is_text;
    } else if (!is_text) {
      depth += line[i] == '{' || line[i] == '[';
      depth -= line[i] == '}' || line[i] == ']';
      if (depth > 8) return true;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (is_too_deep(text)) return bad_input("brackets are nested more than 8 deep");
  // Fields are found one after another, so objects of many would take long.
  std::vector<size_t> fields;
  bool has_too_many = false;
  const auto look = [&](int, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start) fields.push_back(0);
    if (event == Json::parse_event_t::object_end) fields.pop_back();
    if (event == Json::parse_event_t::key && ++fields.back() > kMostFields) has_too_many = true;
    return event != Json::parse_event_t::key || !has_too_many;
  };
  Json parsed = Json::parse(text, look, false);
  if (has_too_many) return over_limit("an object has more than {} fields", kMostFields);
  if (parsed.is_discarded()) return bad_input("it is not JSON: '{}'", excerpt(text));
  return parsed;
}

Status JsonFields::read(std::string_view name, std::string& text) {
  const Json* value = HONE_TRY(find(name));
  if (!value->is_string()) return wrong(name, "a text");
  text = value->get<std::string>();
  return {};
}

Status JsonFields::read(std::string_view name, uint64_t& hash) {
  std::string digits;
  HONE_TRY(read(name, digits));
  const std::optional<uint64_t> parsed = parse_hash(digits);
  hash = parsed.value_or(0);
  return parsed ? Status() : wrong(name, "0x and 16 digits");
}

Status JsonFields::read(std::string_view name, int64_t& integer) {
  const Json* value = HONE_TRY(find(name));
  // One above the range would wrap around.
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
    return wrong(name, "an integer");
  integer = value->get<int64_t>();
  return {};
}

Status JsonFields::read(std::string_view name, double& real) {
  const Json* value = HONE_TRY(find(name));
  if (!value->is_number()) return wrong(name, "a number");
  real = value->get<double>();
  return {};
}

Status JsonFields::read(std::string_view name, std::vector<double>& reals) {
  const Json* value = HONE_TRY(find(name));
  if (!value->is_array()) return wrong(name, "a list of numbers");
  reals.clear();
  for (const Json& each : *value) {
    if (!each.is_number()) return wrong(name, "a list of numbers");
    reals.push_back(each.get<double>());
  }
  return {};
}

Status JsonFields::read(std::string_view name, Outcome& outcome) {
  std::string word;
  HONE_TRY(read(name, word));
  const std::optional<Outcome> known = outcome_from_name(word);
  if (!known) return bad_input("there is no outcome '{}'", excerpt(word));
  outcome = *known;
  return {};
}

Status JsonFields::finish() const {
  for (const auto& [name, value] : object_.items())
    if (!seen_.contains(name)) return bad_input("there is no field '{}'", excerpt(name));
  return {};
}

Result<const Json*> JsonFields::find(std::string_view name) {
  const auto at = object_.find(std::string(name));
  if (at == object_.end()) return bad_input("the field '{}' is missing", name);
  seen_.emplace(name);
  return &*at;
}

Error JsonFields::wrong(std::string_view name, std::string_view wanted) {
  return bad_input("the field '{}' is not {}", name, wanted);
}

}  // namespace hone
