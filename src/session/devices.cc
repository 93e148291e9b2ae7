#include "session/devices.h"

#include <algorithm>

#include "base/text.h"
#include "compile/spmd_programs.h"
#include "cost/gpu_cost.h"
#include "plan/collectives.h"
#include "session/source.h"

namespace hone {

namespace {

constexpr int64_t kMostDevices = 256;
constexpr std::string_view kPart = "cpu";

std::vector<std::string> parts_of_this_machine(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", kPart, i));
  return names;
}

// "2 devices of 1 thread".
std::string devices_text(int64_t devices, int64_t threads) {
  return fmt::format("{} {} of {} {}", devices, devices == 1 ? "device" : "devices", threads,
                     threads == 1 ? "thread" : "threads");
}

// Says something of more threads than cores.
std::string turns_text(int64_t threads, int64_t cores) {
  return threads > cores ? fmt::format("; they take turns on {} cores", cores) : "";
}

std::string rows_text(std::span<const int64_t> rows, int64_t threads, const std::string& turns) {
  std::vector<std::string> shown;
  for (int64_t count : rows) shown.push_back(std::to_string(count));
  constexpr size_t kMostShown = 8;
  if (shown.size() > kMostShown) {
    shown.resize(kMostShown);
    shown.emplace_back("...");
  }
  return fmt::format("{}, with {} rows of the batch{}",
                     devices_text(static_cast<int64_t>(rows.size()), threads), join(shown, ", "),
                     turns);
}

Status check_device(std::string_view name, std::string_view label) {
  if (name == kPart) return {};
  return usage_error("{}: there is no device '{}'", label, excerpt(name))
      .with_hint(
          fmt::format("'{}' is a part of this machine; --devices N means as many of them", kPart));
}

}  // namespace

Result<std::vector<std::string>> parse_device(std::string_view text, std::string_view label) {
  HONE_TRY(check_device(trim(text), label));
  return parts_of_this_machine(1);
}

Result<std::vector<std::string>> parse_devices(std::string_view text, std::string_view label) {
  int64_t count = 0;
  if (const Result<int64_t> number = parse_int(text); number.ok()) {
    count = *number;
  } else {
    for (std::string_view name : split(text, ',')) {
      HONE_TRY(check_device(trim(name), label));
      ++count;
    }
  }
  if (count < 1 || count > kMostDevices)
    return usage_error("{}: {} is outside of 1..{}", label, count, kMostDevices);
  return parts_of_this_machine(count);
}

int64_t threads_per_device(const NativeOptions& options, const DeviceOptions& devices) {
  if (options.threads) return *options.threads;
  if (devices.threads > 0) return devices.threads;
  const int64_t sharing = devices.sharing > 0 ? devices.sharing : std::ssize(devices.names);
  return std::max<int64_t>(1, options.target.cores / sharing);
}

Result<std::shared_ptr<const BatchModel>> batch_model(const Model& model,
                                                      const NativeOptions& options,
                                                      const DeviceOptions& devices,
                                                      int64_t memory_limit, const Face& face) {
  HONE_TRY(check_runs_here(options.target, face.labels));
  const Graph* graph = single_graph(model);
  if (graph == nullptr)
    return unsupported("'{}' is a tree of segments; the batch of a single graph can be divided",
                       excerpt(model.name))
        .with_hint("run it on one device");
  if (!options.plans.empty() || options.plan_seed)
    return usage_error("a plan is of one device; there are {}", devices.names.size());
  CompileOptions compile = compile_options(options, nullptr, face);
  compile.memory_limit = memory_limit;
  return std::make_shared<const BatchModel>(
      *graph, options.target, std::move(compile),
      BatchOptions{.devices = devices.names,
                   .inputs = devices.batch,
                   .threads = threads_per_device(options, devices),
                   .system = devices.system});
}

Status check_has_no_gpu(const System& system) {
  const auto gpu = std::ranges::find_if(
      system.targets, [](const Target& target) { return target.gpu.has_value(); });
  if (gpu == system.targets.end()) return {};
  return unsupported("system '{}' has the GPU '{}', and CPUs alone run a model together",
                     excerpt(system.name), excerpt(gpu->name))
      .with_hint(
          "'hone explain', 'hone place' and 'hone shard' say how long a model takes on it; a GPU "
          "runs a model alone");
}

Status take_system(DeviceOptions& options, System system) {
  HONE_TRY(check_has_no_gpu(system));
  const auto count = std::ssize(options.names);
  if (system.device_count() != count)
    return usage_error("{} devices: '{}' has {} devices", count, excerpt(system.name),
                       system.device_count());
  if (system.targets.size() != 1)
    return unsupported("the devices of system '{}' are of {} sorts", excerpt(system.name),
                       system.targets.size())
        .with_hint("code is for devices of one sort; 'hone explain --system' takes them all");
  options.system = std::make_shared<const System>(std::move(system));
  options.is_system_said = true;
  return {};
}

Result<decltype(CompileOptions::best_plan)> best_plan_on(const System& system, const Graph& graph,
                                                         const SystemPlanOptions& options,
                                                         std::shared_ptr<const Cost> cost,
                                                         const Face& face) {
  if (cost == nullptr) cost = analytic_cost(system.targets[0]);
  SystemPlans found = HONE_TRY(plan_for_system(graph, system, {{cost}}, options));
  for (const ChosenOverlap& one : found.overlaps)
    if (!one.overlap.empty())
      face.note(fmt::format("{} is in steps by {}: alone {} in place of {}", escape(one.value),
                            one.overlap, format_seconds(one.after), format_seconds(one.before)));
  decltype(CompileOptions::best_plan) best = [plan = std::move(found.plans[0])](
                                                 const Graph&, const Target&, int64_t) {
    return std::optional(plan);
  };
  return best;
}

bool has_collectives(const Model& model) {
  const Graph* const graph = single_graph(model);
  return graph != nullptr && knows_devices(*graph);
}

namespace {

// A plan that is known to be better stays. A timeline that cannot show the graph leaves its
// products whole.
Status plan_by_system(CompileOptions& compile, System system, const Graph& graph,
                      const Target& target, const Face& face) {
  system.targets[0] = target;
  SystemPlanOptions wanted = {
      .prepare = compile.prepare, .heuristics = compile.heuristics, .cancel = compile.cancel};
  wanted.said.emplace_back().threads = compile.plan.threads;
  auto best = best_plan_on(system, graph, wanted, compile.cost, face);
  if (!best.ok() && best.error().code() == ErrorCode::unsupported) return {};
  compile.best_plan = [known = std::move(compile.best_plan), found = HONE_TRY(std::move(best))](
                          const Graph& given, const Target& of, int64_t threads) {
    std::optional<Plan> plan;
    if (known) plan = known(given, of, threads);
    return plan ? plan : found(given, of, threads);
  };
  return {};
}

}  // namespace

Result<DividedCode> collective_code(const Model& model, const Bindings& sizes,
                                    const NativeOptions& options, const DeviceOptions& devices,
                                    int64_t memory_limit, const Face& face) {
  HONE_TRY(check_runs_here(options.target, face.labels));
  const Model sized = HONE_TRY(with_sizes(model, sizes));
  CompileOptions compile = compile_options(options, nullptr, face);
  compile.memory_limit = memory_limit;
  compile.plan.threads = threads_per_device(options, devices);
  const Graph& graph = *single_graph(sized);
  if (devices.is_system_said)
    HONE_TRY(plan_by_system(compile, *devices.system, graph, options.target, face));
  return spmd_programs(graph, options.target, std::move(compile), std::ssize(devices.names),
                       devices.batch, devices.system.get());
}

std::string division_text(const BatchModel& model, const ManyDevices& made, int64_t cores) {
  std::vector<int64_t> rows;
  for (const DeviceShare& device : made.devices()) rows.push_back(device.count);
  rows.resize(model.devices(), 0);
  return rows_text(rows, model.threads(),
                   turns_text(std::ssize(made.devices()) * model.threads(), cores));
}

std::string division_text(const BatchDivision& division, int64_t threads, int64_t cores) {
  std::vector<int64_t> rows;
  for (const BatchDivision::Share& share : division.shares) rows.push_back(share.count);
  return rows_text(rows, threads, turns_text(std::ssize(rows) * threads, cores));
}

namespace {

std::string doing_text(size_t devices, int64_t threads, std::string_view what, int64_t cores) {
  const auto count = static_cast<int64_t>(devices);
  return fmt::format("{}, {}{}", devices_text(count, threads), what,
                     turns_text(count * threads, cores));
}

}  // namespace

std::string training_text(size_t devices, int64_t threads, int64_t cores) {
  return doing_text(devices, threads, "which share the samples of each batch", cores);
}

std::string meeting_text(size_t devices, int64_t threads, int64_t cores) {
  return doing_text(devices, threads, "which meet in collectives", cores);
}

}  // namespace hone
