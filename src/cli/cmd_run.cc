#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/hosts.h"
#include "cli/inputs.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/program_texts.h"
#include "cli/quantizing.h"
#include "cli/source.h"
#include "cli/tracer.h"
#include "session/denormals.h"
#include "session/evaluation.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace hone::cli {

namespace {

// A value without a meaning ends the run. Nodes that only the run could type are told, not checked.
Status take_checks(const OnnxChecks& checks, std::vector<Tensor>& outputs, Console& console) {
  HONE_TRY(checks.take(outputs));
  console.note("no value is out of range in {} checks", checks.made);
  if (!checks.unseen.empty())
    console.note(
        "{} checks are left out, because only the run could type their parts, such as that of {}",
        checks.unseen.size(), checks.unseen.front().node);
  return {};
}

// The use of the outputs.
struct Wishes {
  std::vector<std::string> names;
  std::vector<Expected> expected;
};

// All that can be wrong with the command line is found before the work.
Result<Wishes> wishes_of(std::vector<std::string> names, const Arguments& arguments) {
  if (arguments.given("output"))
    HONE_TRY(check_output_path(names.size(), arguments.text("output")));
  HONE_TRY(check_tolerance_options(arguments));
  Wishes wishes = {.names = std::move(names), .expected = {}};
  if (arguments.given("expect"))
    wishes.expected = HONE_TRY(read_expected(wishes.names, arguments.text("expect")));
  return wishes;
}

Status hand_out(const Wishes& wishes, const std::vector<Tensor>& outputs,
                const Arguments& arguments, Console& console) {
  if (arguments.given("output"))
    HONE_TRY(write_outputs(wishes.names, outputs, arguments.text("output"), console));
  if (wishes.expected.empty()) return {};
  return compare_outputs(wishes.names, outputs, wishes.expected, tolerance_of(arguments),
                         Differing::fails, console);
}

// On a worker.
Status run_elsewhere(const Arguments& arguments, Console& console) {
  const std::shared_ptr<Worker> worker = HONE_TRY(given_worker(arguments));
  const CompiledModel model = HONE_TRY(given_on_worker(worker, arguments, console));
  const Wishes wishes = HONE_TRY(wishes_of(output_names(model.file), arguments));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> outputs = HONE_TRY(model.runnable->run(
      model.inputs.tensors,
      {.cancel = &console.cancel(), .flush_denormals = arguments.given("flush-denormals")}));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.write(outputs_table(wishes.names, outputs));
  console.note("run by the worker {} in {}, with the way there and back", worker->name(),
               format_seconds(elapsed.count()));
  return hand_out(wishes, outputs, arguments, console);
}

Status run_compiled(const Arguments& arguments, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  Tracer tracer(arguments);
  const CompiledModel model = HONE_TRY(tracer.timed(
      "load", [&] { return given_compiled(arguments.text("MODEL"), arguments, console); }));
  const Wishes wishes = HONE_TRY(wishes_of(output_names(model.file), arguments));
  const bool flushes = arguments.given("flush-denormals");
  std::vector<UnitTimes> times;
  RunOptions options = {.cancel = &console.cancel(), .flush_denormals = flushes};
  if (tracer.is_wanted()) options.trace = &tracer.runs();
  const std::vector<Tensor> outputs = HONE_TRY(tracer.timed(
      "run",
      [&] {
        return model.runnable->run(model.inputs.tensors, options,
                                   tracer.is_wanted() ? &times : nullptr);
      }));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.write(outputs_table(wishes.names, outputs));
  console.note("compiled before, loaded and run in {}", format_seconds(elapsed.count()));
  if (const MeshDivision* mesh = model.file.mesh())
    console.note("mesh {}: {}", mesh->mesh_text(),
                 meeting_text(mesh->devices(), model.runnable->threads(),
                              int64_t{std::thread::hardware_concurrency()}));
  else if (const BatchDivision* division = model.file.division())
    console.note("{}", division_text(*division, model.runnable->threads(),
                                     int64_t{std::thread::hardware_concurrency()}));
  const bool is_made_so =
      std::ranges::any_of(model.file.programs(), &HonecFile::Program::flushes_denormals);
  if (flushes && is_made_so) {
    console.note(
        "denormals are taken for 0, as when it was compiled: 'hone check' compares it with its "
        "source");
  } else if (flushes) {
    const std::vector<Tensor> exact =
        HONE_TRY(model.runnable->run(model.inputs.tensors, {.cancel = &console.cancel()}));
    console.note("{}", HONE_TRY(flush_error(outputs, exact, wishes.names)));
  }
  add_runs(tracer.trace(), tracer.runs(), times);
  HONE_TRY(tracer.write(console));
  return hand_out(wishes, outputs, arguments, console);
}

}  // namespace

namespace {

// Programs of devices, as a text.
Status run_programs(const Processes& processes, const Arguments& arguments, Console& console) {
  const GivenPrograms given = HONE_TRY(given_programs(processes, arguments, console));
  const Wishes wishes = HONE_TRY(wishes_of(given.outputs, arguments));
  const auto start = std::chrono::steady_clock::now();
  const std::shared_ptr<const Runnable> code = HONE_TRY(given.code(processes, arguments, console));
  const std::vector<Tensor> outputs =
      HONE_TRY(code->run(given.inputs.tensors, {.cancel = &console.cancel()}));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.write(outputs_table(wishes.names, outputs));
  console.note("{} {}, native, compiled and run in {}", given.devices,
               given.devices == 1 ? "device" : "devices", format_seconds(elapsed.count()));
  return hand_out(wishes, outputs, arguments, console);
}

// If there are several runs, each output says which one it is of.
std::vector<std::string> names_of_runs(const std::vector<std::string>& names, int64_t runs) {
  if (runs == 1) return names;
  std::vector<std::string> all;
  for (int64_t k = 1; k <= runs; ++k)
    for (const std::string& name : names) all.push_back(fmt::format("{}#{}", name, k));
  return all;
}

// The tensors of each run, of which the first one's are made. Random ones differ from run to run,
// given ones do not.
Result<std::vector<std::vector<Tensor>>> tensors_of_runs(const Source& source, const Graph& sized,
                                                         const RunInputs& first, int64_t runs,
                                                         const Arguments& arguments,
                                                         Console& console) {
  int64_t bytes = 0;
  for (const Tensor& tensor : first.tensors) bytes += tensor.byte_size();
  for (const ValueId output : sized.outputs()) bytes += sized.type(output).static_bytes();
  if (runs > 1 && bytes > first.memory_left.native / (runs - 1))
    return name_memory_limit(
               over_limit("{} runs have inputs and outputs of {} each; {} are left for them", runs,
                          format_bytes(bytes), format_bytes(first.memory_left.native)),
               arguments)
        .error();
  std::vector<std::vector<Tensor>> all = {first.tensors};
  Face face = limited_face(arguments, console);
  face.notice = {};  // told for the first one
  for (int64_t k = 1; k < runs; ++k)
    all.push_back( HONE_TRY(resolve_inputs(signature_of(source.model), source.open,
                                           arguments.integer("seed") + k, Engine::native, face))
                      .tensors);
  return all;
}

// A model whose plan says which device computes what. `place` makes its programs.
Status run_placed(const std::function<Result<PlacedModel>(const Graph&)>& place,
                  const Processes& processes, const Arguments& arguments, Console& console) {
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {true}));
  if (single_graph(source.model) == nullptr)
    return no_single_graph(source.model, "a plan that places kernels on devices");
  const int64_t runs = arguments.given("repeat") ? arguments.integer("repeat") : 1;
  const Wishes wishes =
      HONE_TRY(wishes_of(names_of_runs(output_names(source.model), runs), arguments));
  const RunInputs first =
      HONE_TRY(inputs_on(std::nullopt, source, arguments, Engine::native, console));
  const Model sized = HONE_TRY(with_sizes(source.model, first.bindings));
  const std::vector<std::vector<Tensor>> inputs =
      HONE_TRY(tensors_of_runs(source, *single_graph(sized), first, runs, arguments, console));
  const auto start = std::chrono::steady_clock::now();
  const PlacedModel placed = HONE_TRY(place(*single_graph(sized)));
  const std::shared_ptr<const PlacedCode> code =
      HONE_TRY(placed.code(processes, first.memory_left.native, arguments, console));
  std::vector<Tensor> outputs;
  for (std::vector<Tensor>& one : HONE_TRY(code->run_all(inputs, {.cancel = &console.cancel()})))
    std::ranges::move(one, std::back_inserter(outputs));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.write(outputs_table(wishes.names, outputs, source.labels));
  console.note("{}, native, compiled and run {}in {}", placed.how,
               runs == 1 ? "" : fmt::format("{} times ", runs), format_seconds(elapsed.count()));
  return hand_out(wishes, outputs, arguments, console);
}

// With --trace the times are those of the real code.
Result<QuickStart> quick_start_of(const Arguments& arguments) {
  const std::string& when = arguments.text("quick-start");
  if (arguments.given("trace") && arguments.given("quick-start") && when != "never")
    return usage_error("--quick-start {} does not go with --trace", when)
        .with_hint("a trace is of the code that later runs use, too");
  if (arguments.given("trace") || when == "never") return QuickStart::never;
  return when == "always" ? QuickStart::always : QuickStart::where_sooner;
}

// A model that ran on quick code gets its real code, which later starts find in the cache. Without
// a cache nobody would use it.
Status finish_code(const NativeModel& model, const NativeOptions& options, Console& console) {
  const size_t kernels = model.code().early_kernels();
  if (kernels == 0) return {};
  if (options.cache == nullptr) {
    console.note("it ran on quick code of {} kernels (--quick-start never: without)", kernels);
    return {};
  }
  const auto start = std::chrono::steady_clock::now();
  HONE_TRY(model.code().finish(console.face().progress, &console.cancel()));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.note(
      "it ran on quick code of {} kernels; the code for later runs was made in {} "
      "(--quick-start never: without)",
      kernels, format_seconds(elapsed.count()));
  return {};
}

Status run_on(const Processes& processes, const Arguments& arguments, Console& console) {
  if (names_programs(arguments)) return run_programs(processes, arguments, console);
  // Numerics are the reference's.
  const bool is_native = arguments.text("backend") == "native" && !arguments.given("numerics");
  if (is_native && !names_compiled(arguments)) {
    const std::optional<PipelinePlan> pipeline = HONE_TRY(given_pipeline(arguments));
    const std::optional<DevicePlan> placing = HONE_TRY(given_device_plan(arguments));
    const auto place = [&](const Graph& graph) {
      return pipeline ? pipelined_model(*pipeline, graph, arguments, console)
                      : placed_model(*placing, graph, arguments, console);
    };
    if (pipeline || placing) return run_placed(place, processes, arguments, console);
  }
  if (arguments.given("repeat"))
    return usage_error("--repeat is for a plan that places kernels on devices")
        .with_hint("'hone place MODEL --system local:2 -o FILE' makes one for --plan FILE");
  const std::optional<DeviceOptions> devices =
      HONE_TRY(device_options(arguments, processes, console));
  if (names_compiled(arguments)) return run_compiled(arguments, console);
  HONE_TRY(refuse_verify(arguments));
  if (arguments.given("backend") && is_native != (arguments.text("backend") == "native"))
    return usage_error("--numerics is for --backend reference");
  NativeOptions native;
  if (is_native) {
    native = HONE_TRY(native_options(arguments, console));
    native.quick_start = HONE_TRY(quick_start_of(arguments));
  } else {
    HONE_TRY(refuse_native_options(arguments));
  }
  const bool flushes = arguments.given("flush-denormals");
  if (flushes && !is_native) return usage_error("--flush-denormals is for native code");
  for (std::string_view option : {"error", "drop"})
    if (!is_native && arguments.given(option))
      return usage_error("--{} chooses levels of native code", option);
  Tracer tracer(arguments);
  if (tracer.is_wanted() && !is_native) return usage_error("--trace is for native code");
  tracer.watch(native);
  std::shared_ptr<OnnxChecks> checks;
  if (arguments.given("checked")) checks = std::make_shared<OnnxChecks>();
  const Source read = HONE_TRY(tracer.timed(
      "read",
      [&] { return given_source(arguments.text("MODEL"), arguments, console, {true, checks}); }));
  const std::optional<Lowered> lowered =
      HONE_TRY(lowered_source(read, arguments, arguments.integer("seed"), native, console));
  const Source& source = lowered ? lowered->source : read;
  std::vector<std::string> names = output_names(source.model);
  if (checks && checks->made > 0) names.pop_back();

  const Wishes wishes = HONE_TRY(wishes_of(names, arguments));
  const Engine engine = is_native ? Engine::native : Engine::reference;
  const RunInputs inputs = HONE_TRY(inputs_on(devices, source, arguments, engine, console));

  const auto start = std::chrono::steady_clock::now();
  const Face face = console.face();
  std::shared_ptr<const NativeModel> compiled;
  std::shared_ptr<const Runnable> runnable;
  if (devices)
    runnable = HONE_TRY(divided_model(source.model, inputs, native, *devices, processes, arguments,
                                      console))
                   .runnable;
  else if (is_native)
    runnable = compiled = HONE_TRY(native_model(source.model, inputs, native, face));
  std::vector<UnitTimes> times;
  RunOptions options = {.cancel = face.cancel};
  if (tracer.is_wanted()) {
    compiled->code().keep_sources();
    options.trace = &tracer.runs();
  }
  std::vector<Tensor> outputs =
      is_native
          ? HONE_TRY(tracer.timed(
                "run",
                [&] {
                  return runnable->run(inputs.tensors, options,
                                       tracer.is_wanted() ? &times : nullptr);
                }))
          : HONE_TRY(evaluate_on(source.model, inputs,
                                 {.numerics = numerics_of(arguments.text("numerics"))},
                                 console.face()));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (tracer.is_wanted())
    HONE_TRY(add_runs(tracer.trace(), tracer.runs(), times, *compiled, source.layers));
  const std::vector<Tensor> flushed = flushes ? outputs : std::vector<Tensor>();
  if (checks) HONE_TRY(take_checks(*checks, outputs, console));

  console.write(outputs_table(names, outputs, source.labels));
  const std::string how =
      is_native ? "native, compiled and run in" : arguments.text("numerics") + " numerics,";
  console.note("{} {}", how, format_seconds(elapsed.count()));
  HONE_TRY(tracer.write(console));
  if (flushes) {
    const std::string error =
        HONE_TRY(flush_error(flushed, source.model, inputs, native, names, face));
    console.note("{}", error);
  }
  HONE_TRY(hand_out(wishes, outputs, arguments, console));
  return compiled == nullptr ? Status() : finish_code(*compiled, native, console);
}

}  // namespace

Status cmd_run(const Arguments& arguments, Console& console) {
  HONE_TRY(Tracer::check(arguments));
  if (!names_programs(arguments) && HONE_TRY(names_one_worker(arguments)))
    return run_elsewhere(arguments, console);
  return with_processes(arguments, console, [&](const Processes& processes) {
    return run_on(processes, arguments, console);
  });
}

}  // namespace hone::cli
