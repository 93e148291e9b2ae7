#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/npz.h"
#include "log/log.h"

// Logs as files that other programs read: JSON lines, which are read back as the same records, and
// arrays for numpy. docs/log.md describes both.

namespace hone {

// One line without a line break: {"record": {...}}, {"text": {...}} or {"plan": {...}}.
std::string json_line(const Record& record);
std::string json_line(const KnownText& text);
std::string json_line(const BestPlan& best);

inline constexpr int64_t kMaxLogLine = 512 << 20;  // bytes

// All that a log has, or of what the query asks for: its records and their texts. The call takes
// lines with their line breaks.
Status export_lines(const Log& log, const Query& query,
                    const std::function<Status(std::string_view)>& call);

// Takes a line, with or without its line break. The error says what in the line is wrong.
Status import_line(std::string_view line, LogMerge& merge);

// The same as arrays: a row per record, and tables of the distinct texts that rows refer to.
Result<std::vector<NamedTensor>> export_arrays(const Log& log, const Query& query);

}  // namespace hone
