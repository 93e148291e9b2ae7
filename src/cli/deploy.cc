#include "cli/deploy.h"

#include "base/text.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/native.h"
#include "cli/processes.h"
#include "cli/quantizing.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "cli/tracer.h"
#include "compile/mesh_division.h"
#include "ir/summary.h"
#include "report/pass_times.h"
#include "session/build_library.h"
#include "session/deployed.h"
#include "session/file_cubins.h"
#include "session/sizes.h"
#include "session/stages.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// The graphs of the model, for one choice of sizes and one level of instructions.
Status compile_level(const NativeOptions& level, const GivenGraphs& given,
                     const Arguments& arguments, Console& console,
                     std::vector<std::vector<DeployedGraph>>& by_graph) {
  for (size_t i = 0; i < given.graphs.size(); ++i) {
    CompileOptions options = compile_options(level, given.plans[i], console.face());
    std::vector<StageTime> times;
    std::vector<PassReport> passes;
    options.observer = noting(times, level.observer);
    options.prepare.passes.observer = [&](const PassReport& pass, const Graph&) {
      passes.push_back(pass);
    };
    by_graph[i].push_back(
        HONE_TRY(deployed_graph(*given.graphs[i], static_cast<uint32_t>(i), level.target,
                                std::move(options), Console::labels())));
    if (const std::string& unknown = by_graph[i].back().unknown; !unknown.empty())
      console.note("{}", unknown);
    constexpr size_t kMostKernels = 10;
    if (const GpuShare& share = by_graph[i].back().share; !share.on_cpu.empty())
      console.note("{}: {}", level.target.name, trim(gpu_share_text(share, kMostKernels)));
    if (!arguments.given("time-passes")) continue;
    console.say(pass_times(passes));
    for (const StageTime& time : times)
      console.note("{:8} {}", name(time.stage), format_seconds(time.seconds));
  }
  return {};
}

// Inputs and outputs of a library are named as the model names them.
void name_ports(std::vector<DeployedGraph>& made, const Model& model) {
  const auto name = [](std::vector<image::Port>& ports, const auto& values) {
    for (size_t i = 0; i < ports.size(); ++i) ports[i].name = values[i].name;
  };
  for (DeployedGraph& one : made) {
    name(one.open.image.inputs, model.inputs);
    name(one.open.image.outputs, model.outputs);
  }
}

// Refuses models that cannot be a library.
constexpr std::string_view kFileInstead =
    "a compiled model can have it: -o FILE.honec, which C runs by hone.h and hone_runtime";

Status check_static(const Graph& graph) {
  if (graph.is_static()) return {};
  return unsupported("a library is for sizes that are numbers; {} is open",
                     graph.symbols()[0].name())
      .with_hint(fmt::format(
          "{}; or {}", size_text(smallest_bindings(graph, {}), Console::labels()), kFileInstead));
}

Status check_single(const Model& model) {
  if (single_graph(model) != nullptr) return {};
  return usage_error("--sizes: '{}' is a tree of segments for these sizes, too",
                     excerpt(model.name))
      .with_hint("--dim and --shape choose one size; sizes that stay open have code for all");
}

// The model with these sizes. A file that needs numbers to be one graph is read once more.
Result<Source> with_choice(const Source& source, const Sizes& sizes, const Arguments& arguments,
                           Console& console) {
  if (single_graph(source.model) == nullptr) {
    const std::string& model = arguments.text("MODEL");
    if (model == "-")
      return usage_error("--sizes: the model is read once for each choice, but - is read once")
          .with_hint("name its file");
    return given_source(model, arguments, console, {.dims = sizes.dims});
  }
  Source choice = source;
  choice.open.sizes.dims.insert(sizes.dims.begin(), sizes.dims.end());
  return choice;
}

// The model with the sizes of --sizes, each time that it is given.
Result<std::vector<Source>> choices_of(const Source& source, const Arguments& arguments,
                                       Console& console) {
  const Sizes taken = HONE_TRY(parse_sizes(arguments.list("dim"), {}, Console::labels()));
  std::vector<Source> choices;
  for (std::string_view text : arguments.list("sizes")) {
    std::vector<std::string> dims;
    for (std::string_view dim : split(text, ',')) dims.emplace_back(trim(dim));
    Result<Sizes> sizes = parse_sizes(dims, {}, {.size = "--sizes"});
    if (!sizes.ok()) return std::move(sizes).error();
    for (const auto& [name, size] : sizes->dims)
      if (taken.dims.contains(name))
        return usage_error("--sizes: '{}' has a size by --dim", excerpt(name));
    choices.push_back(HONE_TRY(with_choice(source, *sizes, arguments, console)));
  }
  if (choices.empty()) choices.push_back(source);
  return choices;
}

// Inputs and outputs of a file are named as the model names them.
void name_as(const Model& model, HonecModel& file) {
  for (size_t i = 0; i < file.inputs.size(); ++i) file.inputs[i].name = model.inputs[i].name;
  for (size_t i = 0; i < file.outputs.size(); ++i) file.outputs[i].name = model.outputs[i].name;
}

// The programs of the file, by sizes, and for each the best level first.
struct Deployed {
  HonecModel model;
  std::vector<DeployedGraph> graphs;
};

Result<Deployed> compiled(const Source& source, std::span<const NativeOptions> levels,
                          const Arguments& arguments, Console& console) {
  const std::vector<Source> choices = HONE_TRY(choices_of(source, arguments, console));
  const Model open = HONE_TRY(with_sizes(source.model, HONE_TRY(given_sizes(source, console))));
  Deployed made;
  for (const Source& choice : choices) {
    std::vector<std::vector<DeployedGraph>> by_graph;
    for (const NativeOptions& level : levels) {
      const GivenGraphs given = HONE_TRY(given_graphs(choice, level, console));
      if (arguments.given("sizes")) HONE_TRY(check_single(given.model));
      if (arguments.text("emit") == kLibraryForm) HONE_TRY(check_static(*given.graphs[0]));
      // Before anything is compiled: parts may be refused.
      if (by_graph.empty()) {
        made.model = HONE_TRY(deployed_model(open, given.model, Console::labels()));
      }
      by_graph.resize(given.graphs.size());
      HONE_TRY(compile_level(level, given, arguments, console, by_graph));
    }
    for (std::vector<DeployedGraph>& levels_of_graph : by_graph)
      for (DeployedGraph& one : levels_of_graph) made.graphs.push_back(std::move(one));
  }
  name_as(source.model, made.model);
  return made;
}

// For several devices: each level with the same division.
Result<Deployed> divided_file(const DeviceOptions& devices, const Source& source,
                              std::span<const NativeOptions> levels, Console& console) {
  const Graph* const open = single_graph(source.model);
  if (open == nullptr)
    return no_single_graph(source.model, "code for several devices")
        .with_hint("without --devices it is compiled for one");
  Deployed made;
  std::vector<DeployedDevices> by_level;
  for (const NativeOptions& level : levels) {
    const GivenGraphs given = HONE_TRY(given_graphs(source, level, console));
    const Graph& graph = *given.graphs[0];
    if (!graph.is_static())
      return unsupported("code for several devices is for sizes that are numbers; {} is open",
                         graph.symbols()[0].name())
          .with_hint(size_text(smallest_bindings(graph, {}), Console::labels()));
    if (by_level.empty()) {
      made.model = HONE_TRY(deployed_model(given.model, given.model, Console::labels()));
    }
    CompileOptions options = compile_options(level, nullptr, console.face());
    options.plan.threads = threads_per_device(level, devices);
    by_level.push_back(HONE_TRY(deployed_devices(*open, graph, devices, level.target, options)));
  }
  made.model.division = by_level[0].division;
  for (size_t code = 0; code < by_level[0].graphs.size(); ++code)
    for (DeployedDevices& level : by_level) made.graphs.push_back(std::move(level.graphs[code]));
  name_as(source.model, made.model);
  if (const auto have = std::ssize(made.model.division->shares); have < std::ssize(devices.names))
    console.note("{} of {} devices have rows; the file is for them", have, devices.names.size());
  return made;
}

// For devices that divide values: each level with the same sharding.
Result<Deployed> sharded_file(const DeviceOptions& devices, const Source& source,
                              std::span<const NativeOptions> levels, const Arguments& arguments,
                              Console& console) {
  if (single_graph(source.model) == nullptr) return no_single_graph(source.model, "a sharding");
  Deployed made;
  std::optional<ShardedModel> sharded;
  for (const NativeOptions& level : levels) {
    const GivenGraphs given = HONE_TRY(given_graphs(source, level, console));
    const Graph& graph = *given.graphs[0];
    if (!sharded) {
      const ShardCosts prices = {costs_of(*devices.system, console),
                                 HONE_TRY(auto_shard_options(arguments, console))};
      sharded = HONE_TRY(sharded_on(graph, *devices.shards, devices, prices, console.face()));
      made.model = HONE_TRY(deployed_model(given.model, given.model, Console::labels()));
      made.model.mesh = mesh_division(graph, sharded->subject, sharded->partition);
      made.model.constants = sharded->subject.constants;
    }
    DividedCode code = HONE_TRY(
        parts_code(*sharded, level, devices, memory_limit(console.face()), console.face()));
    made.model.division = std::move(code.division);
    DeployedGraph& one = made.graphs.emplace_back();
    one.open.image = std::move(code.images[0]);
    one.plan = std::move(code.plans[0]);
    one.prices = std::move(code.prices);
  }
  name_as(source.model, made.model);
  return made;
}

Status write_library(std::span<const HonecProgram> programs, const std::string& path,
                     Console& console) {
  const LibrarySources sources =
      HONE_TRY(library_sources(programs, library_name(path), HONE_VERSION));
  const char* const compiler = std::getenv("CC");
  LibraryBuild build = {.scratch = fs::temp_directory_path(), .cancel = &console.cancel()};
  if (compiler != nullptr && *compiler != '\0') build.compiler = compiler;
  HONE_TRY(build_library(sources, path, build));
  std::vector<std::string> levels;
  for (const HonecProgram& program : programs)
    levels.push_back(instructions_text(needs_of(*program.image)));
  console.note("wrote {} and {}, for {}", path, header_path(path).string(), join(levels, "; "));
  return {};
}

// Levels of precision are chosen by the prices of the best level of instructions.
Result<std::optional<Lowered>> lowered_levels(const Source& source,
                                              std::span<const NativeOptions> levels,
                                              const Arguments& arguments, Console& console) {
  std::optional<Lowered> lowered =
      HONE_TRY(lowered_source(source, arguments, 0, levels.front(), console));
  if (lowered && arguments.given("sizes"))
    return usage_error("--error is measured for one choice of sizes; --sizes has several")
        .with_hint("--dim NAME=N");
  return lowered;
}

// NVIDIA's assembler, if it is at hand; empty: it is not.
std::string assembler_at_hand() {
  if (const char* const named = std::getenv("HONE_PTXAS"); named != nullptr && *named != '\0')
    return std::string_view(named) == "none" ? "" : named;
  const char* const folders = std::getenv("PATH");
  for (std::string_view folder : split(folders == nullptr ? "" : folders, ':')) {
    const fs::path found = fs::path(folder) / "ptxas";
    std::error_code failed;
    if (!folder.empty() && fs::exists(found, failed)) return found;
  }
  return "";
}

// Machine code of what is for GPUs, by the driver or the assembler that is at hand. The file is as
// good without, but for the time of its first load.
Result<std::vector<PtxCubin>> cubins_of(std::span<const HonecProgram> programs,
                                        std::span<const NativeOptions> levels, Console& console) {
  if (std::ranges::none_of(programs, [](const HonecProgram& one) { return one.capability != 0; }))
    return std::vector<PtxCubin>();
  for (const NativeOptions& level : levels)
    if (level.device != nullptr)
      return cubins_by(*level.device, programs, cubin_store(level.cache.get()));
  const std::string path = assembler_at_hand();
  if (path.empty()) return std::vector<PtxCubin>();
  const auto made = [&]() -> Result<std::vector<PtxCubin>> {
    return cubins_by(HONE_TRY(ptx_assembler(path)), programs, fs::temp_directory_path());
  };
  Result<std::vector<PtxCubin>> cubins = made();
  if (cubins.ok()) return cubins;
  console.note("the file has no machine code of GPUs: {}", cubins.error().to_string());
  return std::vector<PtxCubin>();
}

}  // namespace

Status deploy(const Arguments& arguments, const std::string& path, Console& console) {
  const bool is_library = arguments.text("emit") == kLibraryForm;
  const std::optional<DeviceOptions> devices = HONE_TRY(device_options(arguments, {}, console));
  if (devices && is_library)
    return usage_error("a library computes on the thread that calls it, not on several devices");
  if (devices && arguments.given("sizes"))
    return usage_error("--sizes is for one device; --dim chooses the sizes of several");
  Tracer tracer(arguments);
  std::vector<NativeOptions> levels = HONE_TRY(native_levels(arguments, console));
  for (NativeOptions& level : levels) tracer.watch(level);
  if (levels.front().target.gpu && (is_library || devices))
    return unsupported("{} is for CPUs; '{}' is a GPU",
                       is_library ? "a library" : "code for several devices",
                       levels.front().target.name)
        .with_hint("-o FILE.honec without --devices has code for GPUs");
  // A library starts no threads.
  if (is_library)
    for (NativeOptions& level : levels) HONE_TRY(set_threads(level, 1, Console::labels()));
  const Source given = HONE_TRY(tracer.timed(
      "read", [&] { return given_source(arguments.text("MODEL"), arguments, console); }));
  const std::optional<Lowered> lowered =
      HONE_TRY(lowered_levels(given, levels, arguments, console));
  const Source& source = lowered ? lowered->source : given;
  const bool is_single = single_graph(source.model) != nullptr;
  if (is_library && !is_single)
    return no_single_graph(source.model, "a library").with_hint(std::string(kFileInstead));
  Deployed made = !devices          ? HONE_TRY(compiled(source, levels, arguments, console))
                  : devices->shards ? HONE_TRY(sharded_file(*devices, source, levels, arguments,
                                                            console))
                                    : HONE_TRY(divided_file(*devices, source, levels, console));
  if (is_library) name_ports(made.graphs, source.model);
  if (lowered)
    for (DeployedGraph& one : made.graphs)
      one.plan = with_levels(lowered->said, std::move(one.plan));
  std::vector<HonecProgram> programs;
  for (const DeployedGraph& one : made.graphs) programs.push_back(one.program());
  if (!is_library) made.model.cubins = HONE_TRY(cubins_of(programs, levels, console));
  HONE_TRY(console.cancel().check());
  HONE_TRY(tracer.timed(
      "write",
      [&] {
        return is_library ? write_library(programs, path, console)
                          : write_compiled(made.model, programs, path, console);
      }));
  return tracer.write(console);
}

}  // namespace hone::cli
