#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/hosts.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/program_texts.h"
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
  if (const BatchDivision* division = model.file.division())
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

// A model whose plan says which device computes what.
Status run_placed(const DevicePlan& plan, const Processes& processes, const Arguments& arguments,
                  Console& console) {
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {true}));
  if (single_graph(source.model) == nullptr)
    return no_single_graph(source.model, "a plan that places kernels on devices");
  const Wishes wishes = HONE_TRY(wishes_of(output_names(source.model), arguments));
  const RunInputs inputs =
      HONE_TRY(inputs_on(std::nullopt, source, arguments, Engine::native, console));
  const auto start = std::chrono::steady_clock::now();
  const Model sized = HONE_TRY(with_sizes(source.model, inputs.bindings));
  const PlacedModel placed = HONE_TRY(placed_model(plan, *single_graph(sized), arguments, console));
  const std::shared_ptr<const Runnable> code =
      HONE_TRY(placed.code(processes, inputs.memory_left.native, arguments, console));
  const std::vector<Tensor> made =
      HONE_TRY(code->run(inputs_of_devices(placed.graph, placed.programs.programs, inputs.tensors),
                         {.cancel = &console.cancel()}));
  const std::vector<Tensor> outputs = outputs_of_graph(placed.programs, made);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.write(outputs_table(wishes.names, outputs, source.labels));
  console.note("{}, native, compiled and run in {}", placed.how, format_seconds(elapsed.count()));
  return hand_out(wishes, outputs, arguments, console);
}

Status run_on(const Processes& processes, const Arguments& arguments, Console& console) {
  if (names_programs(arguments)) return run_programs(processes, arguments, console);
  // Numerics are the reference's.
  const bool is_native = arguments.text("backend") == "native" && !arguments.given("numerics");
  if (is_native && !names_compiled(arguments)) {
    const std::optional<DevicePlan> placing = HONE_TRY(given_device_plan(arguments));
    if (placing) return run_placed(*placing, processes, arguments, console);
  }
  const std::optional<DeviceOptions> devices =
      HONE_TRY(device_options(arguments, processes, console));
  if (names_compiled(arguments)) return run_compiled(arguments, console);
  HONE_TRY(refuse_verify(arguments));
  if (arguments.given("backend") && is_native != (arguments.text("backend") == "native"))
    return usage_error("--numerics is for --backend reference");
  NativeOptions native;
  if (is_native)
    native = HONE_TRY(native_options(arguments, console));
  else
    HONE_TRY(refuse_native_options(arguments));
  const bool flushes = arguments.given("flush-denormals");
  if (flushes && !is_native) return usage_error("--flush-denormals is for native code");
  Tracer tracer(arguments);
  if (tracer.is_wanted() && !is_native) return usage_error("--trace is for native code");
  tracer.watch(native);
  std::shared_ptr<OnnxChecks> checks;
  if (arguments.given("checked")) checks = std::make_shared<OnnxChecks>();
  const Source source = HONE_TRY(tracer.timed(
      "read",
      [&] { return given_source(arguments.text("MODEL"), arguments, console, {true, checks}); }));
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
  return hand_out(wishes, outputs, arguments, console);
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
