#include <algorithm>
#include <nlohmann/json.hpp>

#include "oracle/conformance.h"

namespace hone {
namespace {

template <class Enum, size_t count>
Result<Enum> enum_of(const nlohmann::json& text, const Enum (&values)[count]) {
  for (const Enum value : values)
    if (text == name(value)) return value;
  return bad_input("{} is not known", text.dump());
}

}  // namespace

std::string_view name(CaseClass result) {
  switch (result) {
    case CaseClass::pass: return "pass";
    case CaseClass::wrong: return "wrong";
    case CaseClass::unsupported: return "unsupported";
    case CaseClass::crashed: return "crashed";
  }
  return "";
}

std::string_view name(CaseMode mode) {
  switch (mode) {
    case CaseMode::plain: return "plain";
    case CaseMode::constants: return "constants";
    case CaseMode::symbolic: return "symbolic";
  }
  return "";
}

std::string_view name(SymbolicDims dims) {
  switch (dims) {
    case SymbolicDims::none: return "none";
    case SymbolicDims::deferred: return "deferred";
    case SymbolicDims::leading: return "leading";
    case SymbolicDims::all: return "all";
  }
  return "";
}

std::string outcome_line(const CaseOutcome& outcome) {
  const nlohmann::ordered_json object = {
      {"result", name(outcome.result)}, {"reason", outcome.reason},
      {"where", outcome.where},         {"symbolic", name(outcome.symbolic)},
      {"data_sets", outcome.data_sets},
  };
  // Names in files may be any bytes.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<CaseOutcome> parse_outcome(std::string_view line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  for (const char* key : {"result", "reason", "where", "symbolic"})
    if (!object.is_object() || !object.contains(key) || !object[key].is_string())
      return bad_input("the outcome has no '{}'", key);
  if (!object.contains("data_sets") || !object["data_sets"].is_number_integer())
    return bad_input("the outcome has no 'data_sets'");
  CaseOutcome outcome;
  outcome.result = HONE_TRY(enum_of(object["result"], kCaseClasses));
  outcome.symbolic = HONE_TRY(enum_of(object["symbolic"], kSymbolicDims));
  outcome.reason = object["reason"].get<std::string>();
  outcome.where = object["where"].get<std::string>();
  outcome.data_sets = object["data_sets"].get<int64_t>();
  return outcome;
}

}  // namespace hone
