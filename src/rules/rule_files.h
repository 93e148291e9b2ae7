#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace hone {

inline constexpr int64_t kMaxRuleText = int64_t{64} << 20;  // bytes of a file

// A file of rules/, which the build has put into the library.
struct RuleFile {
  std::string_view name;  // "dot.rules"
  std::string_view text;
};
std::span<const RuleFile> rule_files();

// True if a rule is for use where nobody chooses: proved for all sizes, and no worse in floats.
bool is_sound(const Rule& rule);

// The sound ones of all files, which the tests verify.
Result<std::vector<Rule>> default_rules();

}  // namespace hone
