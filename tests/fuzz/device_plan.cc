#include <cstdint>
#include <string_view>

#include "cost/analytic.h"
#include "ir/text.h"
#include "place/plain_system.h"
#include "program/devices.h"
#include "search/placed_graph.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The graph of the seeds.
constexpr std::string_view kGraph = R"(
graph @g(%x: f32[4, 8], %w: f32[8, 8]) -> f32[4, 8] {
  %d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %e = exp %x
  %s = add %d, %e
  %t = sort %s {axis = 1}
  return %t
})";

System two_devices() {
  System system;
  system.name = "two";
  system.targets = {plain_target("device", int64_t{1} << 30)};
  system.devices = {{2, 0, int64_t{1} << 30}};
  system.links = {star_links("port", 1e9)};
  return system;
}

// Devices that a plan says are kept or refused. Programs that come of it do not wait for each other
// for ever.
void try_to_place(const DevicePlan& plan, std::string_view text) {
  static const Graph graph = parse_graph(kGraph).value();
  static const System system = two_devices();
  static const std::vector<std::shared_ptr<const Cost>> costs = {
      std::make_shared<AnalyticCost>(system.targets[0])};
  const PlacedGraphOptions options = {.plan = plan.plan.plan, .steps = plan.steps};
  const Result<PlacedGraph> placed = place_problem(graph, system, costs, options);
  if (!placed.ok()) {
    HONE_CHECK(!plan.placed(placed.error()).what().empty(), "{}", text);
    return;
  }
  HONE_CHECK(check(placed->problem).ok(), "{}", text);
  const Result<DevicePlacement> placement = said_placement(*placed);
  if (!placement.ok()) return;
  HONE_CHECK(check(placed->problem, *placement).ok(), "{}", text);
  const StepDevices steps = steps_of(*placed, *placement);
  for (const auto& [step, device] : plan.steps.device)
    if (const auto said = steps.device.find(step); said != steps.device.end())
      HONE_CHECK(said->second == device, "{}: {} is on {}", text, step, said->second);
  const Result<PlacedPrograms> programs = placed_programs(*placed, *placement, costs, options);
  if (programs.ok()) HONE_CHECK(check_no_deadlock(programs->programs, 2).ok(), "{}", text);
}

}  // namespace

HONE_FUZZ(device_plan) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<DevicePlan> plan = parse_device_plan(text, "fuzz");
  if (!plan.ok()) return;
  const std::string printed = print(plan->plan.plan, plan->steps);
  HONE_CHECK(has_devices(printed), "{}", printed);
  const Result<DevicePlan> again = parse_device_plan(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(again->plan.plan == plan->plan.plan && again->steps == plan->steps, "{}", printed);
  HONE_CHECK(print(again->plan.plan, again->steps) == printed, "{}", printed);
  try_to_place(*plan, printed);
}

}  // namespace hone::HONE_FILE
