#include <string_view>

#include "assign/core_search.h"
#include "assign/json.h"
#include "assign/solve.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Reading never crashes. A problem that is read is well formed, is written as a text that means the
// same, and can be solved by each search. The solution is within the limits, and none below the
// bound.
HONE_FUZZ(assign) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hone::parse_assignment(text, "fuzz");
  const hone::Result<hone::AssignProblem> problem = hone::parse_assign_json(text, "fuzz");
  if (!problem.ok()) return;
  HONE_CHECK(hone::check(*problem).ok(), "{}", text);
  const std::string printed = hone::print_assign_json(*problem);
  const hone::Result<hone::AssignProblem> again = hone::parse_assign_json(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::print_assign_json(*again) == printed, "{}", printed);
  if (problem->nodes.size() > 100) return;
  const std::span<const hone::CoreSearchRow> searches = hone::core_searches();
  const std::string_view search = searches[size % searches.size()].name;
  const hone::Result<hone::AssignResult> result =
      hone::solve(*problem, {.search = std::string(search), .steps = 30});
  if (!result.ok() || !result->bounds.cost) return;
  const hone::AssignValue value = hone::evaluate(*problem, result->assignment).value();
  HONE_CHECK(value.fits(*problem), "{}", printed);
  HONE_CHECK(value.cost == *result->bounds.cost && value.cost >= result->bounds.bound, "{}",
             printed);
}

}  // namespace hone::HONE_FILE
