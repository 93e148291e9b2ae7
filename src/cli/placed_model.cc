#include "cli/placed_model.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/cache.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/machines.h"
#include "cli/processes.h"
#include "cli/sharding.h"
#include "session/program_text.h"
#include "transport/threads.h"

namespace hone::cli {
namespace {

// Options that say how each device computes what it has.
constexpr std::string_view kOfOneDevice[] = {
    "threads", "plan-seed", "plan-lenient",    "optimize",
    "without", "trace",     "flush-denormals", "numerics",
    "backend", "checked",   "verify",          "assume-range",
    "mesh",    "shard",     "batch",           "quick-start"};

Status check_options_of_placed(const Arguments& arguments) {
  for (const Option& option : arguments.command().options)
    if (arguments.given(option.name) &&
        std::ranges::find(kOfOneDevice, option.name) != std::end(kOfOneDevice))
      return usage_error("--{} does not go with a plan that places kernels on devices",
                         option.name);
  return {};
}

Result<System> system_of_steps(const StepDevices& steps, const Arguments& arguments) {
  int64_t devices = 1;
  for (const auto& [name, number] : steps.device)
    devices = std::max<int64_t>(devices, int64_t{number} + 1);
  const std::vector<std::string> names = HONE_TRY(given_devices(arguments));
  if (!names.empty()) devices = std::ssize(names);
  const std::string target = arguments.text("target");
  if (!arguments.given("system")) return load_system(fmt::format("local:{}", devices), target);
  System system = HONE_TRY(load_system(arguments.text("system"), target));
  if (!names.empty() && system.device_count() != devices)
    return usage_error("--devices says {}, and '{}' has {}", devices, excerpt(system.name),
                       system.device_count());
  return system;
}

}  // namespace

Result<std::optional<DevicePlan>> given_device_plan(const Arguments& arguments) {
  if (!arguments.given("plan")) return std::optional<DevicePlan>();
  const std::string& file = arguments.text("plan");
  const std::string text = HONE_TRY(read_file(file, kMaxPlanText));
  if (!has_devices(text)) return std::optional<DevicePlan>();
  return std::optional(HONE_TRY(parse_device_plan(text, file)));
}

Result<PlacedModel> placed_model(const DevicePlan& plan, const Graph& graph,
                                 const Arguments& arguments, Console& console) {
  HONE_TRY(check_options_of_placed(arguments));
  const System system = HONE_TRY(system_of_steps(plan.steps, arguments));
  PlacedModel model;
  model.costs = costs_of(system, console);
  const PlacedGraphOptions options = {
      .plan = plan.plan.plan, .steps = plan.steps, .cancel = &console.cancel()};
  Result<PlacedGraph> placed = place_problem(graph, system, model.costs, options);
  if (!placed.ok()) return plan.placed(std::move(placed).error());
  model.graph = *std::move(placed);
  const DevicePlacement placement = HONE_TRY(said_placement(model.graph));
  const PlaceJudge judge(model.graph.problem);
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(placement));
  HONE_TRY(judge.check_memory(placement, timeline));
  model.programs = HONE_TRY(placed_programs(model.graph, placement, model.costs, options));
  model.how = fmt::format("{} {} of '{}'", system.device_count(),
                          system.device_count() == 1 ? "device" : "devices", excerpt(system.name));
  return model;
}

Result<std::shared_ptr<const EachDevice>> PlacedModel::code(const Processes& processes,
                                                            int64_t memory_limit,
                                                            const Arguments& arguments,
                                                            Console& console) const {
  NativeOptions native;
  // A folder that cannot be used costs time, and nothing else, unless the user named it.
  if (arguments.text("cache") != "none") {
    Result<std::unique_ptr<CompileCache>> opened = open_cache(arguments);
    if (!opened.ok() && arguments.given("cache")) return opened.error();
    if (opened.ok()) native.cache = *std::move(opened);
  }
  const std::vector<PlaceDevice> devices = place_devices(graph.problem);
  std::vector<Image> images;
  for (size_t d = 0; d < devices.size(); ++d) {
    native.target = graph.problem.system.targets[devices[d].target];
    DevicePrograms one;
    one.programs.push_back(programs.programs.programs[programs.programs.of_device[d]]);
    std::vector<Image> image = HONE_TRY(images_of(one, native, console.face()));
    images.push_back(std::move(image[0]));
  }
  std::vector<uint32_t> of_device(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) of_device[d] = static_cast<uint32_t>(d);
  std::shared_ptr<Crew> crew = processes.crew;
  if (crew != nullptr && crew->devices() != std::ssize(devices))
    return usage_error("the plan is for {} devices, and the processes have {}", devices.size(),
                       crew->devices());
  if (crew == nullptr) {
    const CrewOptions own = {.version = HONE_VERSION, .memory_limit = memory_limit};
    crew = HONE_TRY(Crew::lead(
        HONE_TRY(make_thread_transport(static_cast<int32_t>(devices.size()))), "process", own));
  }
  return crew->load_each(images, of_device);
}

}  // namespace hone::cli
