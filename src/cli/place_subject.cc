#include "cli/place_subject.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "cli/prices.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "place/partition_json.h"
#include "place/task_text.h"
#include "place/text.h"

namespace hone::cli {
namespace {

constexpr int64_t kTaskDevices = 4;  // where nobody says how many

Result<std::string> problem_text(const std::string& path) {
  return path == "-" ? read_stdin() : read_file(path, static_cast<int64_t>(kMaxPlaceText));
}

// The prices that --cost names, by target.
Result<std::vector<std::shared_ptr<const Cost>>> given_costs(const System& system,
                                                             const Arguments& arguments,
                                                             Console& console) {
  std::vector<std::shared_ptr<const Cost>> costs = costs_of(system, console);
  const std::string word = arguments.text("cost");
  if (word == "analytic") return costs;
  const KnownPrices known = user_prices();
  const auto note = [&](std::string_view line) { console.note("{}", line); };
  for (size_t i = 0; i < costs.size(); ++i)
    costs[i] = HONE_TRY(known.cost_by(word, system.targets[i], costs[i], note));
  return costs;
}

}  // namespace

bool is_problem_path(std::string_view path) {
  return path == "-" || path.ends_with(".json") || path.ends_with(".txt") ||
         path.ends_with(".place");
}

Result<PlaceProblem> load_place_problem(const std::string& path, std::optional<System> system,
                                        std::optional<int64_t> tasks) {
  const std::string name = path == "-" ? "<stdin>" : path;
  const std::string text = HONE_TRY(problem_text(path));
  const std::string_view begin = trim(text);
  const bool is_own = is_place_text(text), is_json = begin.starts_with('{');
  if (is_own || is_json) {
    if (tasks)
      return usage_error("--devices is for graphs of tasks; this file has devices")
          .with_hint("--system replaces them");
    Result<PlaceProblem> problem =
        is_own ? parse_place_text(text, name) : parse_partition_json(text, name);
    if (!system || !problem.ok()) return problem;
    return on_system(std::move(*problem), std::move(*system));
  }
  if (begin.empty() || begin[0] < '0' || begin[0] > '9')
    return bad_input("no problem of placement begins with '{}'", excerpt(begin.substr(0, 40)))
        .at(name)
        .with_hint("docs/placement.md has the formats");
  if (system && tasks)
    return usage_error("--devices and --system both say which devices there are");
  if (!system) system = HONE_TRY(task_system(tasks.value_or(kTaskDevices)));
  return parse_task_text(text, name, *system);
}

Result<PlaceSubject> given_place_subject(const Arguments& arguments, Console& console) {
  PlaceSubject subject;
  std::optional<System> system;
  if (arguments.given("system"))
    system = HONE_TRY(load_system(arguments.text("system"), arguments.text("target")));
  else if (arguments.given("target"))
    return usage_error("--target is of the devices of --system");
  const std::string path = arguments.text("FILE");
  if (is_problem_path(path)) {
    for (const std::string_view option : {"dim", "shape", "plan", "cost"})
      if (arguments.given(option)) return usage_error("--{} is of a model", option);
    std::optional<int64_t> tasks;
    if (arguments.given("devices")) tasks = arguments.integer("devices");
    subject.file = HONE_TRY(load_place_problem(path, std::move(system), tasks));
    return subject;
  }
  if (!system)
    return usage_error("a model is placed on a system").with_hint("add --system ring:4, or a file");
  for (const std::string_view option : {"check", "from", "devices"})
    if (arguments.given(option)) return usage_error("--{} is for files of problems", option);
  PlacedGraphOptions options;
  options.cancel = &console.cancel();
  std::optional<DevicePlan> plan;
  if (arguments.given("plan")) {
    const std::string file = arguments.text("plan");
    plan = HONE_TRY(parse_device_plan(HONE_TRY(read_file(file, kMaxPlanText)), file));
    options.plan = plan->plan.plan;
    options.steps = plan->steps;
  }
  const Graph graph = HONE_TRY(given_graph(path, arguments, console));
  subject.costs = HONE_TRY(given_costs(*system, arguments, console));
  Result<PlacedGraph> placed = place_problem(graph, *system, subject.costs, options);
  if (!placed.ok()) return plan ? plan->placed(placed.error()) : placed.error();
  subject.model = *std::move(placed);
  return subject;
}

Result<PlaceProblem> place_lesson(const std::string& path, const Arguments& arguments,
                                  Console& console) {
  if (is_problem_path(path)) return load_place_problem(path, std::nullopt, std::nullopt);
  const Graph graph = HONE_TRY(given_graph(path, arguments, console));
  const System system = HONE_TRY(load_system("ring:1", ""));
  PlacedGraphOptions options;
  options.cancel = &console.cancel();
  PlaceProblem problem =
      HONE_TRY(place_problem(graph, system, costs_of(system, console), options)).problem;
  problem.name = path;
  return problem;
}

}  // namespace hone::cli
