#include "cli/explain_placement.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "cli/console.h"
#include "cli/placed_model.h"
#include "cli/source.h"
#include "report/placement_text.h"

namespace hone::cli {
namespace {

constexpr int64_t kMostRows = 1000;  // each asks the judge for all devices

}  // namespace

Result<std::optional<DevicePlan>> explained_device_plan(const Arguments& arguments) {
  const std::string file = arguments.text("PLAN");
  std::error_code failed;
  if (file.empty() || !std::filesystem::is_regular_file(file, failed))
    return std::optional<DevicePlan>();
  const std::string text = HONE_TRY(read_file(file, kMaxPlanText));
  if (!has_devices(text)) return std::optional<DevicePlan>();
  for (const std::string_view other :
       {"diff", "why", "json", "devices", "device", "batch", "mesh", "shard", "pipeline", "target"})
    if (arguments.given(other))
      return usage_error("--{} does not go with a plan that places kernels on devices", other);
  HONE_TRY(check_options_of_placed(arguments, "trace"));
  return std::optional(HONE_TRY(parse_device_plan(text, file)));
}

Status tell_placement(const DevicePlan& plan, const Graph& graph, const Arguments& arguments,
                      Console& console) {
  const SaidPlacement said = HONE_TRY(said_by_plan(plan, graph, arguments, console));
  const PlaceProblem problem = without_pins(said.placed.problem);
  const PlaceJudge judge(problem);
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(said.placement));
  if (arguments.given("trace")) {
    Trace trace;
    add_timeline(trace, timeline.timeline, timeline.jobs.jobs(), names_of(timeline));
    if (const int64_t lost = trace.lost(); lost > 0)
      console.note("{} jobs have no room in the trace", lost);
    HONE_TRY(write_file_atomic(arguments.text("trace"), trace.json("hone explain")));
  }
  HONE_TRY(write_placement_plot(judge, timeline, arguments, console));
  console.write(placement_text(judge, said.placement, timeline, PlaceGoal::step,
                               static_cast<size_t>(std::min(arguments.integer("top"), kMostRows))));
  console.note("step {}", format_seconds(timeline.seconds()));
  return {};
}

PlaceProblem without_pins(PlaceProblem problem) {
  for (PlaceNode& node : problem.nodes) node.pinned = kAnywhere;
  return problem;
}

Status write_placement_plot(const PlaceJudge& judge, const PlaceTimeline& timeline,
                            const Arguments& arguments, Console& console) {
  if (!arguments.given("plot")) return {};
  return write_text(arguments.text("plot"), plot_placement(judge, timeline), console);
}

}  // namespace hone::cli
