#include "cli/placed_model.h"

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/text.h"
#include "cli/cache.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/gpu.h"
#include "cli/machines.h"
#include "cli/processes.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "compile/divided_code.h"
#include "rewrite/prepare.h"
#include "session/program_text.h"
#include "transport/threads.h"

namespace hone::cli {
namespace {

// Options that say how each device computes what it has.
constexpr std::string_view kOfOneDevice[] = {"threads",
                                             "plan-seed",
                                             "plan-lenient",
                                             "optimize",
                                             "without",
                                             "trace",
                                             "flush-denormals",
                                             "numerics",
                                             "backend",
                                             "checked",
                                             "verify",
                                             "assume-range",
                                             "mesh",
                                             "shard",
                                             "batch",
                                             "quick-start",
                                             "isa",
                                             "cost",
                                             "prices",
                                             "sure",
                                             "error",
                                             "drop",
                                             "to"};

std::string how_text(const System& system) {
  return fmt::format("{} {} of '{}'", system.device_count(),
                     system.device_count() == 1 ? "device" : "devices", excerpt(system.name));
}

}  // namespace

Status check_options_of_placed(const Arguments& arguments, std::string_view except,
                               std::string_view plan) {
  for (const Option& option : arguments.command().options)
    if (option.name != except && arguments.given(option.name) &&
        std::ranges::find(kOfOneDevice, option.name) != std::end(kOfOneDevice))
      return usage_error("--{} does not go with {}", option.name, plan);
  return {};
}

PlacedCode::PlacedCode(const Graph& graph, PlacedPrograms programs,
                       std::shared_ptr<const PipelinePrograms> pipeline,
                       std::shared_ptr<const EachDevice> code)
    : graph_(graph),
      programs_(std::move(programs)),
      pipeline_(std::move(pipeline)),
      code_(std::move(code)),
      inputs_(ports_of(graph_, graph_.inputs(), "input")),
      outputs_(ports_of(graph_, graph_.outputs(), "output")) {}

std::vector<Tensor> PlacedCode::given(std::span<const Tensor> inputs) const {
  if (pipeline_ == nullptr) return inputs_of_devices(graph_, programs_.programs, inputs);
  return inputs_of_devices(pipeline_->graph, programs_.programs, pipeline_->parts(inputs));
}

std::vector<Tensor> PlacedCode::made(std::span<const Tensor> outputs) const {
  std::vector<Tensor> all = outputs_of_graph(programs_, outputs);
  return pipeline_ == nullptr ? all : pipeline_->whole(all);
}

Result<std::vector<Tensor>> PlacedCode::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  return made(HONE_TRY(code_->run(given(inputs), options, times)));
}

Result<std::vector<std::vector<Tensor>>> PlacedCode::run_all(
    std::span<const std::vector<Tensor>> inputs, const RunOptions& options) const {
  std::vector<std::vector<Tensor>> all;
  for (const std::vector<Tensor>& one : inputs) all.push_back(given(one));
  std::vector<std::vector<Tensor>> outputs;
  const std::vector<std::vector<Tensor>> ran = HONE_TRY(code_->run_all(all, options));
  for (const std::vector<Tensor>& one : ran) outputs.push_back(made(one));
  return outputs;
}

Result<std::optional<DevicePlan>> given_device_plan(const Arguments& arguments) {
  if (!arguments.given("plan")) return std::optional<DevicePlan>();
  const std::string& file = arguments.text("plan");
  const std::string text = HONE_TRY(read_file(file, kMaxPlanText));
  if (!has_devices(text)) return std::optional<DevicePlan>();
  if (HONE_TRY(given_gpu(arguments)))
    return usage_error("the plan names its devices; a GPU takes no such plan")
        .with_hint("leave --device out, or take a plan of kernels");
  return std::optional(HONE_TRY(parse_device_plan(text, file)));
}

Result<std::optional<PipelinePlan>> given_pipeline(const Arguments& arguments) {
  if (!arguments.given("pipeline")) return std::optional<PipelinePlan>();
  if (arguments.given("plan"))
    return usage_error("--plan and --pipeline both say which device computes what");
  HONE_TRY(given_gpu(arguments));  // which a pipeline does not go with
  const std::string& file = arguments.text("pipeline");
  return std::optional(
      HONE_TRY(parse_pipeline_plan(HONE_TRY(read_file(file, kMaxPipelinePlan)), file)));
}

Result<System> system_of_plan(int64_t devices, const Arguments& arguments) {
  const std::vector<std::string> names = HONE_TRY(given_devices(arguments));
  if (!names.empty()) devices = std::ssize(names);
  const std::string target = arguments.takes("target") ? arguments.text("target") : "";
  if (!arguments.given("system")) return load_system(fmt::format("local:{}", devices), target);
  System system = HONE_TRY(load_system(arguments.text("system"), target));
  if (!names.empty() && system.device_count() != devices)
    return usage_error("--devices says {}, and '{}' has {}", devices, excerpt(system.name),
                       system.device_count());
  return system;
}

Result<SaidPlacement> said_by_plan(const DevicePlan& plan, const Graph& graph,
                                   const Arguments& arguments, Console& console) {
  int64_t devices = 1;
  for (const auto& [name, number] : plan.steps.device)
    devices = std::max<int64_t>(devices, int64_t{number} + 1);
  SaidPlacement said = {.system = HONE_TRY(system_of_plan(devices, arguments))};
  said.costs = costs_of(said.system, console);
  const PlacedGraphOptions options = {
      .plan = plan.plan.plan, .steps = plan.steps, .cancel = &console.cancel()};
  Result<PlacedGraph> made = place_problem(graph, said.system, said.costs, options);
  if (!made.ok()) return plan.placed(std::move(made).error());
  said.placed = *std::move(made);
  said.placement = HONE_TRY(said_placement(said.placed));
  const PlaceJudge judge(said.placed.problem);
  const PlaceTimeline timeline = HONE_TRY(judge.timeline(said.placement));
  HONE_TRY(judge.check_memory(said.placement, timeline));
  return said;
}

Result<PlacedModel> placed_model(const DevicePlan& plan, const Graph& graph,
                                 const Arguments& arguments, Console& console) {
  HONE_TRY(check_options_of_placed(arguments));
  SaidPlacement said = HONE_TRY(said_by_plan(plan, graph, arguments, console));
  const PlacedGraphOptions options = {
      .plan = plan.plan.plan, .steps = plan.steps, .cancel = &console.cancel()};
  PlacedModel model;
  model.programs = HONE_TRY(placed_programs(said.placed, said.placement, said.costs, options));
  model.graph = std::move(said.placed.graph);
  model.system = std::move(said.system);
  model.how = how_text(model.system);
  return model;
}

Result<PlacedModel> pipelined_model(const PipelinePlan& plan, const Graph& graph,
                                    const Arguments& arguments, Console& console) {
  HONE_TRY(check_options_of_placed(arguments, {}, "--pipeline, whose plan says it"));
  return pipelined_on(HONE_TRY(system_of_plan(plan.devices(), arguments)), plan, graph, console);
}

Result<PlacedModel> pipelined_model(const PipelinePlan& plan, const Source& source,
                                    const RunInputs& inputs, const Arguments& arguments,
                                    Console& console) {
  const Model sized = HONE_TRY(with_sizes(source.model, inputs.bindings));
  const Graph* const graph = single_graph(sized);
  if (graph == nullptr) return no_single_graph(source.model, "a pipeline");
  return pipelined_model(plan, *graph, arguments, console);
}

Result<PlacedModel> pipelined_on(System system, const PipelinePlan& plan, const Graph& graph,
                                 Console& console) {
  PlacedModel model = {.system = std::move(system)};
  model.pipeline = std::make_shared<const PipelinePrograms>(HONE_TRY(pipeline_programs(
      graph, plan, model.system, costs_of(model.system, console), &console.cancel())));
  model.graph = HONE_TRY(prepare(graph));
  model.programs = model.pipeline->programs;
  model.how = fmt::format("{}, {} on {}", stages_of(plan), turns_of(plan), how_text(model.system));
  return model;
}

namespace {

// The devices of a plan on this machine: their options and code.
struct PlacedCodes {
  LoadDivided load = {};
  std::vector<Image> images = {};
  bool has_gpus = false;
};

Result<PlacedCodes> codes_of(const PlacedModel& model, NativeOptions& native,
                             const Arguments& arguments, Console& console) {
  PlacedCodes made = {
      .load = {.names = names_of(model.system), .cubins = cubin_store(native.cache.get())}};
  std::vector<std::string> said = HONE_TRY(given_devices(arguments));
  if (!arguments.text("devices").empty() && !parse_int(arguments.text("devices")).ok())
    made.load.names = std::move(said);
  for (size_t d = 0; d < made.load.names.size(); ++d) {
    native.target = model.system.targets[model.system.device(static_cast<int64_t>(d)).target];
    std::shared_ptr<const GpuPart> gpu;
    if (native.target.gpu) {
      gpu = HONE_TRY(gpu_part(made.load.names[d], cuda_library(), &native.target));
    }
    made.has_gpus |= gpu != nullptr;
    DevicePrograms one;
    one.programs.push_back(model.programs.programs.programs[model.programs.programs.of_device[d]]);
    native.device = gpu == nullptr ? nullptr : gpu->device;
    std::vector<ProgramCode> code = HONE_TRY(codes_of(one, native, console.face()));
    made.images.push_back(std::move(code[0].image));
    made.load.gpu_kernels.push_back(std::move(code[0].gpu));
    made.load.gpus.push_back(native.device);
  }
  return made;
}

}  // namespace

Result<std::shared_ptr<const PlacedCode>> PlacedModel::code(const Processes& processes,
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
  const auto devices = static_cast<size_t>(system.device_count());
  PlacedCodes codes = HONE_TRY(codes_of(*this, native, arguments, console));
  const auto with = [&](std::shared_ptr<const EachDevice> each) {
    return std::make_shared<const PlacedCode>(graph, programs, pipeline, std::move(each));
  };
  std::shared_ptr<Crew> crew = processes.crew;
  if (codes.has_gpus && crew != nullptr)
    return usage_error("the plan has GPUs, which other processes do not run")
        .with_hint("without --hosts and --transport all devices are of this process");
  if (codes.has_gpus) {
    codes.load.memory_limit = memory_limit;
    std::vector<DeviceShare> shares;
    for (size_t d = 0; d < devices; ++d)
      shares.push_back(HONE_TRY(load_here(d, devices, codes.images, d, codes.load)));
    return with(std::make_shared<const EachDevice>(std::move(shares), EachDevice::Meeting::here));
  }
  if (crew != nullptr && crew->devices() != static_cast<int32_t>(devices))
    return usage_error("the plan is for {} devices, and the processes have {}", devices,
                       crew->devices());
  if (crew == nullptr) {
    const CrewOptions own = {.version = HONE_VERSION, .memory_limit = memory_limit};
    crew = HONE_TRY(
        Crew::lead(HONE_TRY(make_thread_transport(static_cast<int32_t>(devices))), "process", own));
  }
  std::vector<uint32_t> of_device(devices);
  std::iota(of_device.begin(), of_device.end(), 0U);
  return with(HONE_TRY(crew->load_each(codes.images, of_device)));
}

}  // namespace hone::cli
