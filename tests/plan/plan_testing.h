#pragma once

#include <string>
#include <string_view>

#include "ir/text.h"
#include "plan/plan.h"
#include "tests/target/target_testing.h"

namespace hone {

// A plan of the graph "g" with these entries.
inline Plan plan_of(std::string_view entries) {
  return parse_plan(fmt::format("plan @g {{ {} }}", entries)).value();
}

// The error of check(); empty: it fits.
inline std::string check_error(const Graph& graph, std::string_view entries) {
  const Status status = check(plan_of(entries), graph, parse_target(kSampleTarget, "t").value());
  return status.ok() ? "" : status.error().to_string();
}

}  // namespace hone
