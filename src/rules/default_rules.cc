#include <algorithm>

#include "rules/rule_files.h"

namespace hone {

bool is_sound(const Rule& rule) {
  return rule.rung == Rung::all_sizes && rule.floats != FloatEffect::unknown &&
         rule.floats != FloatEffect::real_only;
}

Result<std::vector<Rule>> default_rules() {
  std::vector<Rule> all;
  for (const RuleFile& file : rule_files())
    for (Rule& rule : HONE_TRY(parse_rules(file.text, {.file = std::string(file.name)})))
      if (is_sound(rule)) all.push_back(std::move(rule));
  return all;
}

}  // namespace hone
