#pragma once

#include <functional>
#include <map>
#include <string>

#include "target/target.h"

// Rows that take minutes are kept as they come, so that a benchmark that was broken off goes on
// where it was. A row holds for one processor and one version of the code.

namespace hone::bench {

using Row = std::map<std::string, double>;

// The row of this name from build/bench/FILE.rows, or else a new one, which is added there: a line
// of JSON with key, processor and row. Lines of other processors and versions stay as they are and
// are not looked at; delete the file to begin anew.
struct RowKey {
  std::string_view file;
  std::string_view name;
  const Target& target;
  std::string_view version;
};
Result<Row> kept_row(const RowKey& key, const std::function<Result<Row>()>& measure);

}  // namespace hone::bench
