#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/problem.h"

// Problems as tables: docs/formats/memory-csv.md.

namespace hone {

constexpr int64_t kMaxMemoryCsvRows = 4'000'000;
constexpr int64_t kMaxMemoryCsvBytes = int64_t{1} << 29;

enum class MemoryColumn : uint8_t {
  id,
  lower,
  upper,
  size,
  alignment,
  hint,
  gaps,
  offset,
  alias,
  space
};
constexpr size_t kMemoryColumns = 10;

// A problem without capacities, and the table that it came from.
struct MemoryCsv {
  MemoryProblem problem;
  std::vector<std::string_view> ids;  // by buffer

  struct Row {
    int64_t line = 0;
    std::string_view text;
  };
  std::string name;                         // of the file
  std::shared_ptr<const std::string> text;  // what all views point into
  Row header;
  std::vector<Row> rows;                                          // by buffer
  std::array<std::optional<size_t>, kMemoryColumns> fields = {};  // by column: which field it is

  std::optional<size_t> field(MemoryColumn column) const {
    return fields[static_cast<size_t>(column)];
  }
};

// Errors name FILE:LINE:COLUMN, and the column of the table. The result is well formed.
Result<MemoryCsv> parse_memory_csv(std::string_view text, std::string_view name);

// True if each buffer could lie somewhere if it were alone: it is not above the capacity of its
// space, and its fixed offset is aligned and within. If it is too large, nothing fits: that is a
// mismatch, other errors are bad input.
Status check_each_alone(const MemoryCsv& csv);

// The rows as they were, with these offsets.
std::string print_memory_csv(const MemoryCsv& csv, std::span<const int64_t> offsets);

}  // namespace hone
