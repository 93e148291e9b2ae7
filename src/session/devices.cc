#include "session/devices.h"

#include <algorithm>

#include "base/text.h"
#include "compile/spmd_programs.h"
#include "cost/gpu_cost.h"
#include "plan/collectives.h"
#include "session/gpu.h"
#include "session/source.h"

namespace hone {

namespace {

constexpr int64_t kMostDevices = 256;
constexpr std::string_view kPart = "cpu";

std::string part_name(int64_t number) { return fmt::format("{} {}", kPart, number); }
std::string gpu_name(int64_t number) { return fmt::format("cuda:{}", number); }

std::vector<std::string> parts_of_this_machine(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(part_name(i));
  return names;
}

bool is_gpu(std::string_view name) { return name.starts_with("cuda"); }

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
          fmt::format("'{}' is a part of this machine, and 'cuda:0' a GPU; --devices N means as "
                      "many parts",
                      kPart));
}

// "cpu", "cuda:1".
Result<std::vector<std::string>> listed_devices(std::string_view text, std::string_view label) {
  std::vector<std::string> names;
  int64_t parts = 0;
  for (std::string_view word : split(text, ',')) {
    const std::optional<int> gpu = HONE_TRY(named_gpu_number(word, label));
    if (!gpu) HONE_TRY(check_device(trim(word), label));
    names.push_back(gpu ? gpu_name(*gpu) : part_name(parts++));
    if (gpu && std::ranges::count(names, names.back()) > 1)
      return usage_error("{}: '{}' is named twice", label, names.back())
          .with_hint("each device runs its part at the same time");
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> parse_device(std::string_view text, std::string_view label) {
  HONE_TRY(check_device(trim(text), label));
  return parts_of_this_machine(1);
}

Result<std::vector<std::string>> parse_devices(std::string_view text, std::string_view label) {
  const Result<int64_t> number = parse_int(text);
  std::vector<std::string> names;
  if (!number.ok()) names = HONE_TRY(listed_devices(text, label));
  const int64_t count = number.ok() ? *number : std::ssize(names);
  if (count < 1 || count > kMostDevices)
    return usage_error("{}: {} is outside of 1..{}", label, count, kMostDevices);
  return number.ok() ? parts_of_this_machine(count) : names;
}

int64_t threads_per_device(const NativeOptions& options, const DeviceOptions& devices) {
  if (options.threads) return *options.threads;
  if (devices.threads > 0) return devices.threads;
  const int64_t parts = std::ssize(devices.names) - std::ranges::count_if(devices.names, is_gpu);
  const int64_t sharing = devices.sharing > 0 ? devices.sharing : std::max<int64_t>(1, parts);
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
                   .system = devices.system,
                   .gpus = devices.gpus});
}

Status check_has_no_gpu(const System& system) {
  const auto gpu = std::ranges::find_if(
      system.targets, [](const Target& target) { return target.gpu.has_value(); });
  if (gpu == system.targets.end()) return {};
  return unsupported("system '{}' has the GPU '{}', and CPUs run a text of programs",
                     excerpt(system.name), excerpt(gpu->name))
      .with_hint("a model, or a plan of 'hone place', runs on it");
}

std::vector<std::string> names_of(const System& system) {
  std::vector<std::string> names;
  int64_t parts = 0, gpus = 0;
  for (int64_t i = 0; i < system.device_count(); ++i)
    names.push_back(system.targets[system.device(i).target].gpu ? gpu_name(gpus++)
                                                                : part_name(parts++));
  return names;
}

Result<std::shared_ptr<const GpuPart>> gpu_part(std::string_view name, const std::string& library,
                                                const Target* target) {
  const std::optional<int> number = HONE_TRY(named_gpu_number(name, "devices"));
  HONE_CHECK(number.has_value(), "a GPU is expected, not '{}'", name);
  GpuPart part = {.device = HONE_TRY(open_cuda_device(library, *number))};
  part.target = target != nullptr ? *target : HONE_TRY(gpu_target(*part.device));
  return std::make_shared<const GpuPart>(std::move(part));
}

Status take_gpus(DeviceOptions& options, const std::string& library) {
  if (std::ranges::none_of(options.names, is_gpu)) return {};
  System system = options.system == nullptr ? System() : *options.system;
  std::vector<DeviceRun> runs;
  for (size_t i = 0; i < options.names.size(); ++i) {
    if (options.system != nullptr) {
      runs.push_back(system.device(static_cast<int64_t>(i)));
      runs.back().count = 1;
    }
    if (!is_gpu(options.names[i])) {
      options.gpus.push_back(nullptr);
      continue;
    }
    options.gpus.push_back(HONE_TRY(gpu_part(options.names[i], library)));
    if (options.system == nullptr || options.is_system_said) continue;
    const Target& target = options.gpus.back()->target;
    const auto known = std::ranges::find(system.targets, target.name, &Target::name);
    runs.back().target = static_cast<size_t>(known - system.targets.begin());
    runs.back().memory_bytes = target.memory_bytes;
    if (known == system.targets.end()) system.targets.push_back(target);
  }
  if (options.system == nullptr) return {};
  system.devices = std::move(runs);
  HONE_TRY(check(system));
  options.system = std::make_shared<const System>(std::move(system));
  return {};
}

Status take_system(DeviceOptions& options, System system) {
  const auto count = std::ssize(options.names);
  if (system.device_count() != count)
    return usage_error("{} devices: '{}' has {} devices", count, excerpt(system.name),
                       system.device_count());
  for (int64_t i = 0; i < count; ++i) {
    const Target& target = system.targets[system.device(i).target];
    if (const std::string& name = options.names[static_cast<size_t>(i)];
        is_gpu(name) != target.gpu.has_value())
      return usage_error("device {} is '{}', and '{}' of '{}' is a {}", i, name,
                         excerpt(target.name), excerpt(system.name), target.gpu ? "GPU" : "CPU")
          .with_hint(fmt::format("--devices {}", join(names_of(system), ",")));
  }
  if (std::ranges::count_if(system.targets, [](const Target& one) { return !one.gpu; }) > 1)
    return unsupported("the devices of system '{}' are of {} sorts", excerpt(system.name),
                       system.targets.size())
        .with_hint("its CPUs are of one sort; 'hone explain --system' takes them all");
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
  if (devices.is_system_said && devices.gpus.empty())
    HONE_TRY(plan_by_system(compile, *devices.system, graph, options.target, face));
  return spmd_programs(graph, options.target, std::move(compile), std::ssize(devices.names),
                       devices.batch, devices.system.get(), devices.gpus);
}

std::string division_text(const BatchModel& model, const ManyDevices& made, int64_t cores) {
  std::vector<int64_t> rows;
  std::vector<std::string> shown;
  bool has_gpu = false;
  for (const DeviceShare& device : made.devices()) {
    rows.push_back(device.count);
    shown.push_back(fmt::format("{} with {}", device.name, device.count));
    has_gpu |= is_gpu(device.name);
  }
  if (has_gpu) return fmt::format("{} rows of the batch", join(shown, ", "));
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

namespace {

constexpr std::string_view kMeet = "which meet in collectives";

}  // namespace

std::string meeting_text(int64_t devices, int64_t threads, int64_t cores) {
  return doing_text(static_cast<size_t>(devices), threads, kMeet, cores);
}

std::string meeting_text(const ManyDevices& made, int64_t cores) {
  std::vector<std::string> names;
  for (const DeviceShare& device : made.devices()) names.push_back(device.name);
  if (std::ranges::any_of(names, is_gpu)) return fmt::format("{}, {}", join(names, ", "), kMeet);
  return meeting_text(std::ssize(names), made.threads(), cores);
}

}  // namespace hone
