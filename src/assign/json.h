#pragma once

#include <string>
#include <string_view>

#include "assign/problem.h"

// Problems and assignments as text: docs/formats/assign-json.md.

namespace hone {

constexpr int64_t kMaxAssignBytes = int64_t{1} << 30;
constexpr size_t kMaxAssignNodes = size_t{1} << 22;
constexpr size_t kMaxAssignEdges = size_t{1} << 23;
constexpr size_t kMaxAssignOptions = size_t{1} << 16;  // of one node
// All nodes and tables that differ, together.
constexpr size_t kMaxAssignNumbers = size_t{1} << 28;

// A file of this format, plain or packed by gzip. Errors name FILE:LINE:COLUMN. The result is well
// formed, and equal tables are stored once.
Result<AssignProblem> parse_assign_json(std::string_view bytes, std::string_view name);

std::string print_assign_json(const AssignProblem& problem);

// The last line that is not empty: "[0, 0, 2, 1, 0]".
Result<Assignment> parse_assignment(std::string_view text, std::string_view name);

std::string print_assignment(const Assignment& assignment);  // with a line break

}  // namespace hone
