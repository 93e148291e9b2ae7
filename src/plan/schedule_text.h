#pragma once

#include <string>

#include "ir/text_parser.h"
#include "plan/schedule.h"

// Schedules as text: "{algorithm = nest, order = [0, 1], lanes = [1:8]}". Plans and programs have
// them.

namespace hone {

std::string print(const Schedule& schedule);  // fields that are as in Schedule{} are left out
Result<Schedule> parse_schedule(TextParser& text);

}  // namespace hone
