#pragma once

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "log/log.h"

// JSON that comes from outside, checked field by field.

namespace hone {

// A text with at most 8 brackets in each other: the parser goes as deep as it is told.
Result<nlohmann::ordered_json> parse_json(std::string_view text);

// An object of fields, each of which is asked for once. The object outlives it.
class JsonFields {
 public:
  explicit JsonFields(const nlohmann::ordered_json& object) : object_(object) {}

  Status read(std::string_view name, std::string& text);
  Status read(std::string_view name, uint64_t& hash);  // "0x" and 16 digits
  Status read(std::string_view name, int64_t& integer);
  Status read(std::string_view name, double& real);
  Status read(std::string_view name, std::vector<double>& reals);
  Status read(std::string_view name, Outcome& outcome);
  // Checks that there is nothing else.
  Status finish() const;

 private:
  Result<const nlohmann::ordered_json*> find(std::string_view name);
  static Error wrong(std::string_view name, std::string_view wanted);

  const nlohmann::ordered_json& object_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace hone
