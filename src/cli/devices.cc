#include "cli/devices.h"

#include "base/text.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/inputs.h"
#include "cli/machines.h"
#include "cli/placed_model.h"
#include "cli/prices.h"
#include "cli/processes.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "compile/spmd_programs.h"
#include "session/sizes.h"
#include "transport/threads.h"

namespace hone::cli {

namespace {

// The command's word for several devices; empty: there is one.
std::string_view division_of(const Arguments& arguments) {
  for (const std::string_view option : {"device", "devices", "hosts", "transport", "shard", "mesh"})
    if (arguments.given(option)) return option;
  return "";
}

// A compiled model has the devices that it has.
Status check_division_of_file(std::string_view division, const Arguments& arguments) {
  const std::string& path = arguments.text("MODEL");
  const HonecFile file = HONE_TRY(HonecFile::open(path));
  const size_t devices = file.division() == nullptr ? 1 : file.division()->shares.size();
  const Error other =
      unsupported("{} is compiled for {}, and has no graph to divide", excerpt(path),
                  devices == 1 ? "one device" : fmt::format("{} devices", devices))
          .with_hint("name the model that it was made of");
  if (file.mesh() == nullptr || division != "mesh") return other;
  const MeshRef mesh = HONE_TRY(given_shards(arguments)).mesh;
  const std::string fits = file.mesh()->mesh_text();
  if (mesh_text(*mesh) == fits) return {};
  return unsupported("{} is compiled for the mesh {}, not {}", excerpt(path), fits,
                     mesh_text(*mesh))
      .with_hint(
          fmt::format("--mesh {} fits it; 'hone compile MODEL --mesh {} -o FILE.honec' makes "
                      "one for the other",
                      fits, mesh_text(*mesh)));
}

}  // namespace

Result<std::vector<std::string>> given_devices(const Arguments& arguments) {
  const bool is_one = arguments.given("device"), are_several = arguments.given("devices");
  if (is_one && are_several)
    return usage_error("--device is short for --devices with one device; only one can be given");
  if (HONE_TRY(given_gpu(arguments))) return std::vector<std::string>();
  if (is_one) return parse_device(arguments.text("device"), "--device");
  if (!are_several) return std::vector<std::string>();
  std::vector<std::string> names = HONE_TRY(parse_devices(arguments.text("devices"), "--devices"));
  HONE_TRY(check_gpus_among(names, arguments));
  return names;
}

Status check_devices(const Arguments& arguments) {
  HONE_TRY(check_mesh_search(arguments));
  if (HONE_TRY(given_gpu(arguments))) return {};
  HONE_TRY(given_devices(arguments));
  const std::string_view division = division_of(arguments);
  if (division.empty()) {
    if (arguments.given("batch")) return usage_error("--batch needs --devices");
    return {};
  }
  if (names_sharding(arguments) && arguments.given("batch"))
    return usage_error("--batch divides the batch alone; it does not go with --shard");
  // A plan that places kernels on devices is for several of them.
  const bool places = arguments.given("plan") && HONE_TRY(given_device_plan(arguments)).has_value();
  for (std::string_view other : {"plan", "plan-seed", "trace", "profile", "donate", "vs", "backend",
                                 "numerics", "quick-start"})
    if (arguments.given(other) && !(places && other == "plan"))
      return usage_error("--{} is of one device; it does not go with --{}", other, division);
  return names_compiled(arguments) ? check_division_of_file(division, arguments) : Status();
}

Result<System> own_system(int64_t devices, Console& console) {
  return user_prices().system(devices, HONE_TRY(host_target()),
                              [&](std::string_view line) { console.note("{}", line); });
}

namespace {

// The mesh says how many devices there are, or they say the mesh.
Result<std::vector<std::string>> devices_of_mesh(ShardRequest& request,
                                                 std::vector<std::string> devices) {
  MeshRef mesh = request.plan ? request.plan->mesh : request.mesh;
  if (mesh == nullptr) {
    if (devices.empty())
      return usage_error("--shard needs devices")
          .with_hint("--devices 2, or --mesh x=2,y=4 for a grid of them");
    mesh = HONE_TRY(parse_mesh(fmt::format("x={}", devices.size())));
    request.mesh = mesh;
  }
  if (devices.empty()) return parse_devices(std::to_string(mesh->device_count()), "--mesh");
  if (std::ssize(devices) != mesh->device_count())
    return usage_error("{} devices are given, and the mesh {} has {}", devices.size(),
                       mesh_text(*mesh), mesh->device_count())
        .with_hint(fmt::format("--devices {}", mesh->device_count()));
  return devices;
}

// Devices of which the user has but said how many are those of his system.
Status name_by_system(std::vector<std::string>& names, const Arguments& arguments) {
  if (!arguments.given("system") || names.empty()) return {};
  const bool are_listed = arguments.given("devices") && !parse_int(arguments.text("devices")).ok();
  const System system = HONE_TRY(load_system(arguments.text("system"), ""));
  if (are_listed || system.device_count() != std::ssize(names)) return {};
  names = names_of(system);
  return check_gpus_among(names, arguments);
}

// The names of the devices, and the threads of each.
Result<DeviceOptions> named_devices(const Arguments& arguments, const Processes& processes) {
  DeviceOptions options = {.names = {}, .batch = arguments.list("batch")};
  if (names_sharding(arguments)) options.shards = HONE_TRY(given_shards(arguments));
  if (processes.crew == nullptr) {
    options.names = HONE_TRY(given_devices(arguments));
    if (options.shards) options.names = HONE_TRY(devices_of_mesh(*options.shards, options.names));
    HONE_TRY(name_by_system(options.names, arguments));
    return options;
  }
  const std::span<const std::string> names = processes.crew->names();
  options.names = {names.begin(), names.end()};
  if (options.shards) options.names = HONE_TRY(devices_of_mesh(*options.shards, options.names));
  if (processes.devices_here == 0)
    options.threads = processes.threads_elsewhere;
  else
    options.sharing = processes.devices_here;
  return options;
}

}  // namespace

Result<std::optional<DeviceOptions>> device_options(const Arguments& arguments,
                                                    const Processes& processes, Console& console) {
  HONE_TRY(check_devices(arguments));
  DeviceOptions options = HONE_TRY(named_devices(arguments, processes));
  const bool is_said = arguments.given("system");
  if (options.names.empty() && is_said)
    return usage_error("--system says how devices are linked; a model needs --devices")
        .with_hint("'hone explain MODEL --system SYSTEM' says how long a model takes on it");
  if (options.names.empty()) return std::optional<DeviceOptions>();
  if (is_said)
    HONE_TRY(take_system(options, HONE_TRY(load_system(arguments.text("system"), ""))));
  else
    options.system = std::make_shared<const System>(
        HONE_TRY(own_system(std::ssize(options.names), console)));
  HONE_TRY(take_gpus(options, cuda_library()));
  return std::optional(std::move(options));
}

Result<RunInputs> inputs_on(const std::optional<DeviceOptions>& devices, const Source& source,
                            const Arguments& arguments, Engine engine, Console& console) {
  if (!devices || devices->shards || !has_collectives(source.model))
    return given_inputs(signature_of(source.model), source.open, arguments, engine, console);
  const Graph signature = HONE_TRY(
      spmd_signature(*single_graph(source.model), std::ssize(devices->names), devices->batch));
  return given_inputs(signature, source.open, arguments, engine, console);
}

namespace {

// All devices of this process are one crew, too: they meet over threads.
Result<std::shared_ptr<const ManyDevices>> loaded_on(const Processes& processes,
                                                     const DividedCode& code, int64_t memory,
                                                     const NativeOptions& options,
                                                     const DeviceOptions& devices) {
  if (!devices.gpus.empty())
    return ManyDevices::load(code.division, code.inputs, code.outputs, code.images,
                             load_options(code, devices.gpus,
                                          {.names = devices.names,
                                           .threads = threads_per_device(options, devices),
                                           .memory_limit = memory,
                                           .cubins = cubin_store(options.cache.get())}));
  std::shared_ptr<Crew> crew = processes.crew;
  if (crew == nullptr) {
    CrewOptions own = {.version = HONE_VERSION, .threads = options.threads};
    own.memory_limit = memory;
    crew = HONE_TRY(
        Crew::lead(HONE_TRY(make_thread_transport(static_cast<int32_t>(devices.names.size()))),
                   "process", own));
  }
  return crew->load(code);
}

// The cores that all devices share; those of other machines have their own.
int64_t cores_of(const Processes& processes, const Target& target) {
  const bool are_here = processes.crew == nullptr || processes.devices_here > 0;
  return are_here ? target.cores : INT64_MAX;
}

// Values are divided as the request says.
Result<DividedModel> on_mesh(const Model& model, const RunInputs& inputs,
                             const NativeOptions& options, const DeviceOptions& devices,
                             const Processes& processes, const Arguments& arguments,
                             Console& console) {
  const Model sized = HONE_TRY(with_sizes(model, inputs.bindings));
  const Graph* graph = single_graph(sized);
  if (graph == nullptr) return no_single_graph(model, "a sharding");
  const MeshCode made = HONE_TRY(mesh_code_on(processes, *graph, *devices.shards, options, devices,
                                              inputs.memory_left.native, arguments, console));
  console.note("{}", mesh_code_text(made, cores_of(processes, options.target)));
  return DividedModel{
      .devices = made.devices, .runnable = made.whole, .parts = made.whole->parts(inputs.tensors)};
}

}  // namespace

Result<MeshCode> mesh_code_on(const Processes& processes, const Graph& graph,
                              const ShardRequest& request, const NativeOptions& options,
                              const DeviceOptions& devices, int64_t memory,
                              const Arguments& arguments, Console& console) {
  const ShardCosts prices = {costs_of(*devices.system, console),
                             HONE_TRY(auto_shard_options(arguments, console))};
  return mesh_code(graph, request, prices, options, devices, memory, console.face(),
                   [&](const DividedCode& code) {
                     return loaded_on(processes, code, memory, options, devices);
                   });
}

Result<DividedModel> divided_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options, const DeviceOptions& devices,
                                   const Processes& processes, const Arguments& arguments,
                                   Console& console) {
  if (devices.shards)
    return on_mesh(model, inputs, options, devices, processes, arguments, console);
  DividedModel divided = {.parts = inputs.tensors};
  if (has_collectives(model)) {
    const int64_t memory = inputs.memory_left.native;
    const DividedCode code =
        HONE_TRY(collective_code(model, inputs.bindings, options, devices, memory, console.face()));
    divided.devices = HONE_TRY(loaded_on(processes, code, memory, options, devices));
    divided.runnable = divided.devices;
    console.note("{}", meeting_text(*divided.devices, cores_of(processes, options.target)));
    return divided;
  }
  divided.model =
      HONE_TRY(batch_model(model, options, devices, inputs.memory_left.native, console.face()));
  const std::vector<Type> types = types_of(inputs.tensors);
  const auto made = [&]() -> Result<std::shared_ptr<const ManyDevices>> {
    if (processes.crew == nullptr) return divided.model->devices_for(types);
    return processes.crew->load(HONE_TRY(divided.model->code_for(types)));
  };
  Result<std::shared_ptr<const ManyDevices>> ready = made();
  if (!ready.ok() && ready.error().code() == ErrorCode::unsupported && devices.batch.empty())
    return std::move(ready).error().with_hint(
        "without --devices it runs on one; --batch INPUT[:DIM] says which inputs have the batch");
  divided.runnable = divided.devices = HONE_TRY(std::move(ready));
  console.note(
      "{}", division_text(*divided.model, *divided.devices, cores_of(processes, options.target)));
  return divided;
}

}  // namespace hone::cli
