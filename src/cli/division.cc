#include "cli/division.h"

#include "base/text.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/gpu.h"
#include "cli/machines.h"
#include "search/system_plan.h"
#include "shard/batch_inputs.h"

namespace hone::cli {
namespace {

// Parts of this machine, unless a system is said.
Result<System> system_of(int64_t devices, const Arguments& arguments, Console& console) {
  if (!arguments.given("system")) return own_system(devices, console);
  System system = HONE_TRY(load_system(arguments.text("system"), ""));
  if (system.device_count() != devices)
    return usage_error("--devices {}: '{}' has {} devices", devices, excerpt(system.name),
                       system.device_count());
  return system;
}

Result<Graph> largest_part(const Graph& graph, int64_t devices, const Arguments& arguments,
                           Console& console) {
  std::vector<Type> types;
  for (const ValueId input : graph.inputs()) types.push_back(graph.type(input));
  const BatchInputs batch = HONE_TRY(batch_inputs(graph, types, arguments.list("batch")));
  const std::vector<BatchShare> shares = batch_shares(batch.rows, devices);
  if (std::ssize(shares) != devices)
    return usage_error("--devices {}: the batch has {} rows, so that {} of them have some", devices,
                       batch.rows, shares.size());
  const BatchShare& most = shares.front();
  console.note("each of {} devices with {} of {} rows of the batch{}", devices, most.count,
               batch.rows, shares.back().count == most.count ? "" : ", the most that one has");
  if (devices == 1) return graph;
  return HONE_TRY(batch_part(graph, batch.dims, most)).graph;
}

}  // namespace

bool names_devices(const Arguments& arguments) {
  if (!arguments.given("devices") && !arguments.given("device")) return false;
  const Result<std::optional<int>> gpu = given_gpu(arguments);  // given_devices tells its error
  return !gpu.ok() || !*gpu;
}

Result<Division> given_division(const Graph& graph, const Arguments& arguments, Console& console) {
  const std::vector<std::string> names = HONE_TRY(given_devices(arguments));
  const int64_t devices = std::ssize(names);
  Division division = {HONE_TRY(system_of(devices, arguments, console)), graph};
  if (!has_exchanges(graph)) {
    division.graph = HONE_TRY(largest_part(graph, devices, arguments, console));
  }
  return division;
}

}  // namespace hone::cli
