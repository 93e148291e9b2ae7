#pragma once

#include <span>
#include <string>
#include <vector>

#include "log/log.h"

// The content of a log, for people. Tables have at most 100 columns, whatever it is that the log
// has.

namespace hone {

// How much is known about which subjects: a table per target and conditions.
Result<std::string> log_survey(const Log& log, std::span<const LogGroup> groups);
std::string log_survey_json(const LogCounts& counts, std::span<const LogGroup> groups);

// A record, all of it.
std::string record_text(const Record& record);
// Records of one subject: the fastest first, at most `limit` for each conditions, then the
// failures.
std::string records_table(std::vector<Record> records, size_t limit);
std::string best_plan_text(const BestPlan& best);

}  // namespace hone
