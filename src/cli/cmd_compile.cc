#include "base/file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/deploy.h"
#include "cli/division.h"
#include "cli/machines.h"
#include "cli/native.h"
#include "cli/quantizing.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "cli/tracer.h"
#include "cli/writable.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/gpu_kernels.h"
#include "cost/learned_cost.h"
#include "ir/summary.h"
#include "report/pass_times.h"
#include "runtime/honec.h"
#include "session/build_library.h"
#include "session/devices.h"
#include "session/stages.h"
#include "session/unknown_kernels.h"

#include <filesystem>
#include <span>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// The parts of each graph that are wanted.
struct CompileRequest {
  std::string form;  // of --emit; empty: a summary of the stages
  std::string output;
  std::optional<CompileStage> last;  // of the summary; empty: as far as the sizes allow
  bool wants_times = false;
  bool is_deployed = false;  // a compiled model, .honec, or a library
};

// The stage that makes a form of --emit.
CompileStage stage_of(std::string_view form) {
  if (form == "graph") return CompileStage::graph;
  if (form == "plan") return CompileStage::plan;
  return form == "program" || form == "tiles" ? CompileStage::program : CompileStage::kernels;
}

Result<CompileRequest> compile_request_of(const Arguments& arguments) {
  CompileRequest request;
  request.form = arguments.text("emit");
  request.output = arguments.text("output");
  request.wants_times = arguments.given("time-passes");
  if (arguments.given("stop-after")) {
    request.last = stage_from_name(arguments.text("stop-after"));
    if (!request.form.empty() && stage_of(request.form) > *request.last)
      return usage_error("--emit {} is made in the stage {}, after --stop-after {}", request.form,
                         name(stage_of(request.form)), name(*request.last));
  }
  const bool is_library = request.form == kLibraryForm;
  request.is_deployed = is_library || (request.form.empty() && is_honec_path(request.output));
  if (request.is_deployed && request.last)
    return usage_error("-o {} needs all stages; it does not go with --stop-after", request.output);
  if (arguments.given("sizes") && (is_library || !request.is_deployed))
    return usage_error("--sizes is for compiled models: -o FILE.honec");
  for (std::string_view option : {"devices", "device", "batch", "mesh", "shard"})
    if (arguments.given(option) && !request.is_deployed)
      return usage_error("--{} is for compiled models: -o FILE.honec", option);
  HONE_TRY(check_mesh_search(arguments));
  if (is_library && !is_library_path(request.output))
    return usage_error("--emit library writes libNAME.so or libNAME.a, and NAME.h: -o PATH");
  if (is_library && arguments.given("threads") && arguments.integer("threads") > 1)
    return usage_error("a library computes on the thread that calls it; --threads {} does not fit",
                       arguments.integer("threads"));
  if (request.form.empty() && !request.is_deployed && request.output != "-")
    return usage_error("-o {} does not say what to write", request.output)
        .with_hint(
            "a name that ends in .honec is a compiled model. --emit plan, program, tiles, mlir, "
            "llvm or asm writes text; --emit object fills a folder; --emit library makes one for "
            "C");
  if (request.is_deployed && arguments.given("system") && !names_devices(arguments) &&
      !names_sharding(arguments))
    return usage_error("-o {} is for one device; --system goes with --devices, --emit or a summary",
                       request.output);
  if (request.is_deployed) HONE_TRY(check_writable(request.output));
  if (request.form == "object" && request.output == "-")
    return usage_error("--emit object needs a folder: -o DIR");
  return request;
}

// The assembly of a GPU is PTX.
Result<std::string> text_of_kernel(const TileProgram& tiles, const Target& target, CodeForm form) {
  if (!target.gpu) return compile_tiles(tiles, target, "kernel", form);
  if (form != CodeForm::assembly)
    return unsupported("kernels for the GPU '{}' are written as PTX alone", target.name)
        .with_hint("--emit asm writes PTX");
  return HONE_TRY(compile_for_gpu(tiles, target.gpu->capability, kGpuSymbol)).ptx;
}

// The kernels' code in a form that is text, one after another.
Result<std::string> text_of_kernels(const Program& program, const Target& target, CodeForm form,
                                    Console& console) {
  const std::unique_ptr<Progress> progress = console.progress();
  const auto count = static_cast<int64_t>(program.kernels.size());
  progress->start(count, "kernels");
  std::vector<std::string> texts(program.kernels.size());
  std::vector<Status> states(program.kernels.size());
  auto compile = [&](size_t i) -> Status {
    HONE_TRY(console.cancel().check());
    const TileProgram& tiles = program.kernels[i].tiles;
    texts[i] = fmt::format("// {}\n{}\n", escape(tiles.name),
                           HONE_TRY(text_of_kernel(tiles, target, form)));
    progress->advance();
    return {};
  };
  default_pool().parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
      states[i] = compile(i);
  });
  progress->finish();
  for (Status& state : states) HONE_TRY(std::move(state));
  return join(texts, "\n");
}

// The form that --emit asks for; objects have a folder of their own.
Result<std::string> emitted(Compilation& compilation, const Target& target, std::string_view form,
                            Console& console) {
  if (form == "graph") return print(*HONE_TRY(compilation.graph()));
  if (form == "plan") {
    const Plan& plan = *HONE_TRY(compilation.plan());
    const LearnedCost* learned = compilation.cost().learned();
    return fmt::format(
        "# what is not given is chosen by the price: {}\n{}{}", compilation.cost().name(),
        learned == nullptr ? "" : fmt::format("# learned: {}\n", learned->place()), print(plan));
  }
  const Program& program = *HONE_TRY(compilation.program());
  if (form == "program") return print(program);
  if (form == "tiles") {
    std::string text;
    for (const program::Kernel& kernel : program.kernels) text += print(kernel.tiles);
    return text;
  }
  const CodeForm code = form == "mlir"   ? CodeForm::mlir
                        : form == "llvm" ? CodeForm::llvm
                                         : CodeForm::assembly;
  return text_of_kernels(program, target, code, console);
}

Status write_objects(Compilation& compilation, const fs::path& folder, Console& console) {
  if (compilation.target().gpu)
    return unsupported("objects are code for CPUs; '{}' is a GPU", compilation.target().name)
        .with_hint("--emit asm writes PTX");
  const std::span<const KernelCode> kernels = HONE_TRY(compilation.kernels());
  const Program& program = *HONE_TRY(compilation.program());
  HONE_TRY(make_folders(folder));
  for (size_t i = 0; i < kernels.size(); ++i) {
    // The names of kernels are names of values, which may have any character.
    const std::string path = folder / fmt::format("kernel{}.o", i);
    HONE_TRY(write_file_atomic(path, *kernels[i].object));
    console.note("wrote {}, {}", path, escape(program.kernels[i].tiles.name));
  }
  return {};
}

Result<std::string> summary(Compilation& compilation, CompileStage last) {
  std::string text;
  for (CompileStage stage : kStages) {
    if (stage > last) break;
    text += fmt::format("{:8} {}\n", name(stage), HONE_TRY(made_by(stage, compilation)));
  }
  return text;
}

// Numbers for all that is open.
std::string open_sizes_hint(const Graph& graph) {
  return size_text(smallest_bindings(graph, {}), Console::labels());
}

// How far a graph can be taken: memory is laid out for sizes that are numbers.
Result<CompileStage> last_stage(const Graph& graph, const CompileRequest& request,
                                Console& console) {
  const CompileStage last = request.last.value_or(CompileStage::image);
  if (graph.is_static() || last < CompileStage::image) return last;
  const std::string symbol(graph.symbols()[0].name());
  if (request.last)
    return usage_error("an image is for sizes that are numbers; {} is open", symbol)
        .with_hint(open_sizes_hint(graph));
  console.note("there is no image, because the size {} is open; to choose it: {}", symbol,
               open_sizes_hint(graph));
  return CompileStage::kernels;
}

// The text that is asked for; empty if it is objects, which go to the folder.
Result<std::string> compile_one(const Graph& graph, const NativeOptions& options,
                                const PlacedPlan* plan, const CompileRequest& request,
                                const fs::path& folder, Console& console) {
  std::vector<StageTime> times;
  const Face face = console.face();
  CompileOptions compile = compile_options(options, plan, face);
  compile.observer = noting(times, options.observer);
  std::vector<PassReport> passes;
  if (request.wants_times)
    compile.prepare.passes.observer = [&](const PassReport& pass, const Graph&) {
      passes.push_back(pass);
    };
  Compilation compilation(graph, options.target, compile);

  std::string text;
  if (request.form == "object")
    HONE_TRY(write_objects(compilation, folder, console));
  else if (request.form.empty())
    text = HONE_TRY(summary(compilation, HONE_TRY(last_stage(graph, request, console))));
  else
    text = HONE_TRY(emitted(compilation, options.target, request.form, console));
  const bool is_planned = !request.form.empty()
                              ? request.form != "graph"
                              : request.last.value_or(CompileStage::image) >= CompileStage::plan;
  if (is_planned)
    if (const std::string unknown = HONE_TRY(unknown_kernels_text(compilation)); !unknown.empty())
      console.note("{}", unknown);
  if (request.wants_times) {
    console.say(pass_times(passes));
    for (const StageTime& time : times)
      console.note("{:8} {}", name(time.stage), format_seconds(time.seconds));
  }
  HONE_TRY(console.cancel().check());
  return text;
}

// Each segment under a heading. One that needs numbers for its sizes gets them when the model runs.
Result<std::string> compile_segments(const GivenGraphs& given, const NativeOptions& options,
                                     const CompileRequest& request, Console& console) {
  std::string text;
  for (size_t i = 0; i < given.graphs.size(); ++i) {
    const Graph& graph = *given.graphs[i];
    text += given.heading(i);
    const Result<std::string> one =
        compile_one(graph, options, given.plans[i], request,
                    fs::path(request.output) / fmt::format("segment{}", i + 1), console);
    if (one.ok())
      text += *one;
    else if (one.error().code() == ErrorCode::unsupported && !graph.is_static())
      text += fmt::format("# compiled for the sizes that it meets: {}\n", one.error().what());
    else
      return one.error();
  }
  return text;
}

// The options for the devices of a system. They are of one sort, as the code is.
Result<NativeOptions> options_for_system(const System& system, const Arguments& arguments,
                                         Console& console) {
  for (const std::string_view other : {"plan", "plan-seed", "target", "isa"})
    if (arguments.given(other))
      return usage_error("--system plans for its devices; it does not go with --{}", other);
  if (system.targets.size() != 1)
    return unsupported("the devices of system '{}' are of {} sorts", excerpt(system.name),
                       system.targets.size())
        .with_hint("code is for devices of one sort; 'hone explain --system' takes them all");
  return native_options_for(system.targets[0], arguments, console, DefaultCache::user,
                            LogPlans::left);
}

// Lets the model be compiled by the plan that is the best on the system.
Status plan_by_system(NativeOptions& options, const System& system, const Graph& graph,
                      Console& console) {
  SystemPlanOptions wanted = {
      .prepare = options.prepare, .heuristics = options.heuristics, .cancel = &console.cancel()};
  wanted.said.emplace_back().threads = options.threads;
  options.best_plan = HONE_TRY(best_plan_on(system, graph, wanted, options.cost, console.face()));
  return {};
}

}  // namespace

Status cmd_compile(const Arguments& arguments, Console& console) {
  const CompileRequest request = HONE_TRY(compile_request_of(arguments));
  HONE_TRY(Tracer::check(arguments));
  if (request.is_deployed) return deploy(arguments, request.output, console);
  Tracer tracer(arguments);
  std::optional<System> system;
  if (arguments.given("system")) system = HONE_TRY(load_system(arguments.text("system"), ""));
  Result<NativeOptions> chosen =
      system ? options_for_system(*system, arguments, console)
             : native_options(arguments, console, DefaultCache::user, LogPlans::timed);
  NativeOptions options = HONE_TRY(std::move(chosen));
  tracer.watch(options);
  const Source read = HONE_TRY(tracer.timed(
      "read", [&] { return given_source(arguments.text("MODEL"), arguments, console); }));
  const std::optional<Lowered> lowered =
      HONE_TRY(lowered_source(read, arguments, 0, options, console));
  const Source& source = lowered ? lowered->source : read;
  const GivenGraphs given = HONE_TRY(given_graphs(source, options, console));

  std::string text;
  if (single_graph(source.model) != nullptr) {
    const Graph& graph = *given.graphs[0];
    if (system) HONE_TRY(plan_by_system(options, *system, graph, console));
    Result<std::string> one =
        compile_one(graph, options, given.plans[0], request, request.output, console);
    if (!one.ok() && one.error().code() == ErrorCode::unsupported && !graph.is_static())
      return std::move(one).error().with_hint("for one size: " + open_sizes_hint(graph));
    text = HONE_TRY(std::move(one));
  } else if (system) {
    return no_single_graph(source.model, "hone compile --system");
  } else {
    text = HONE_TRY(compile_segments(given, options, request, console));
  }
  HONE_TRY(tracer.write(console));
  if (request.form == "object") return {};
  if (request.output != "-") return write_file_atomic(request.output, text);
  console.write(text);
  return {};
}

}  // namespace hone::cli
