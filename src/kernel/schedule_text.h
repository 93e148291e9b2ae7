#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/text_parser.h"
#include "kernel/schedule.h"

// Schedules as text: "{algorithm = nest, order = [0, 1], lanes = [1:8]}". Plans and programs have
// them.

namespace hone {

// A row of algorithms.def, or of the table of decisions (plan.h).
struct DecisionInfo {
  std::string_view name;  // "layout"
  std::string_view key;   // "%value"; empty: there is one for the plan. The parts of a field: whose
  std::string_view values;    // its domain, in words
  std::string_view fallback;  // what the planner decides
  std::string_view doc;
};
std::span<const DecisionInfo> schedule_fields();

std::string print(const Schedule& schedule);  // fields that are as in Schedule{} are left out
Result<Schedule> parse_schedule(TextParser& text);

}  // namespace hone
