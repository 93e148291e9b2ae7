#pragma once

#include <functional>
#include <map>
#include <string>

#include "target/target.h"

// Rows that take minutes are kept as they come, so that a benchmark that was broken off goes on
// where it was. A row holds for one processor and one version of the code.

namespace hone::bench {

using Row = std::map<std::string, double>;

// The row of this name from build/bench/tune.rows, or else a new one, which is added there: a line
// of JSON with key, processor and row. Lines of other processors and versions stay as they are and
// are not looked at; delete the file to begin anew.
Result<Row> kept_row(std::string_view name, const Target& target, std::string_view version,
                     const std::function<Result<Row>()>& measure);

}  // namespace hone::bench
