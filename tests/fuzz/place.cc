#include <algorithm>
#include <string_view>

#include "place/partition_json.h"
#include "place/placer.h"
#include "place/task_text.h"
#include "place/text.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {
namespace {

// A problem that is read passes its check, is written as hone's text that means the same, and can
// be placed within its rules, or is refused for the memory.
void try_problem(const Result<PlaceProblem>& problem, std::string_view text) {
  if (!problem.ok()) return;
  HONE_CHECK(check(*problem).ok(), "{}", text);
  const std::string printed = print(*problem);
  const Result<PlaceProblem> again = parse_place_text(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(*again == *problem, "{}", printed);
  (void)print_partition_json(*problem);
  (void)print_task_text(*problem);
  if (problem->nodes.size() > 16 || problem->devices() > 8) return;
  const PlaceJudge judge(*problem);
  const Result<PlaceResult> result = place(judge, {.seconds = 0.05, .trials = 60});
  if (!result.ok()) return;
  HONE_CHECK(check(*problem, result->placement).ok(), "{}", printed);
  const Result<PlaceTimeline> timeline = judge.timeline(result->placement);
  HONE_CHECK(timeline.ok() && judge.check_memory(result->placement, *timeline).ok(), "{}", printed);
}

}  // namespace

HONE_FUZZ(place) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_problem(parse_place_text(text, "fuzz"), text);
  const Result<PlaceProblem> graph = parse_partition_json(text, "fuzz");
  try_problem(graph, text);
  if (graph.ok()) (void)parse_split(text, "fuzz", *graph);
  try_problem(parse_task_text(text, "fuzz", task_system(3).value()), text);
}

}  // namespace hone::HONE_FILE
