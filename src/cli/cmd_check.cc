#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/program_texts.h"
#include "cli/source.h"
#include "report/accuracy_text.h"
#include "session/device_contest.h"
#include "session/evaluation.h"
#include "tensor/filled.h"

namespace hone::cli {
namespace {

// The outputs of one way to compute.
struct Evaluated {
  std::string way;
  std::vector<Tensor> outputs;
};

// All ways of the first run.
std::vector<Evaluated> ways_of(const ContestResult& result) {
  std::vector<Evaluated> all = {{"wide", {}}, {"rounded", {}}, {"fp32", {}}, {"native", {}}};
  for (const auto& [actual, wide, fp32, rounded] : result.first) {
    all[0].outputs.push_back(wide);
    all[1].outputs.push_back(*rounded);
    all[2].outputs.push_back(fp32);
    all[3].outputs.push_back(actual);
  }
  return all;
}

// As its type has it.
Tensor typed(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype || !is_real(dtype)) return tensor;
  return rounded_to(tensor, dtype);
}

// Only what native code gives decides.
Status compare_all(std::span<const std::string> names, std::span<const Evaluated> all,
                   std::span<const Expected> expected, const Arguments& arguments,
                   Console& console) {
  Status native;
  for (const Evaluated& one : all) {
    const bool is_native = &one == &all.back();
    console.print("\n{}\n", one.way);
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < names.size(); ++i)
      outputs.push_back(typed(one.outputs[i], all.back().outputs[i].dtype()));
    native = compare_outputs(names, outputs, expected, tolerance_of(arguments),
                             is_native ? Differing::fails : Differing::is_told, console);
  }
  if (native.ok()) return {};
  return std::move(native).error().about("native");
}

// To find out where the fault is.
std::string next_steps(const Arguments& arguments) {
  if (names_compiled(arguments))
    return fmt::format("to check a new compilation: hone check {}",
                       escape(arguments.text("model")));
  return fmt::format(
      "to find out whether instructions or the plan are at fault: --isa x86-64-v2, --threads 1, "
      "--plan-seed 1; for a small case: hone reduce {}",
      escape(arguments.text("MODEL")));
}

Status judge_one(const Source& source, const RunInputs& inputs, const Contest& contest,
                 const Arguments& arguments, Console& console) {
  const std::vector<std::string> names = output_names(source.model);
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(names, arguments.text("expect")));
  }
  const ContestResult result = HONE_TRY(judge(contest, inputs.tensors));
  console.write(marked(accuracy_table(names, result, true), console));
  if (result.runs > 1)
    console.note("judged by {} runs, because plain fp32 may be lucky in one", result.runs);
  if (!expected.empty())
    HONE_TRY(compare_all(names, ways_of(result), expected, arguments, console));
  if (result.failed() == 0) return {};
  return check_failed("native code is less accurate than allowed in {} of {} outputs",
                      result.failed(), names.size())
      .with_hint(next_steps(arguments));
}

Status check_one(const Source& source, const RunInputs& inputs,
                 const std::shared_ptr<const Runnable>& subject, const Arguments& arguments,
                 Console& console) {
  const Face face = console.face();
  return judge_one(source, inputs, contest_of(source.model, inputs, subject, face), arguments,
                   console);
}

Status check_compiled(const Arguments& arguments, Console& console) {
  HONE_TRY(check_tolerance_options(arguments));
  const CompiledOrigin origin = HONE_TRY(given_origin(arguments, console));
  return check_one(origin.source, origin.compiled.inputs, origin.compiled.runnable, arguments,
                   console);
}

// Programs of devices, as a text: what is proved of them, and native code beside the interpreter.
Status check_programs(const Processes& processes, const Arguments& arguments, Console& console) {
  HONE_TRY(check_tolerance_options(arguments));
  const GivenPrograms given = HONE_TRY(given_programs(processes, arguments, console));
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(given.outputs, arguments.text("expect")));
  }
  console.write(given.proofs);
  const std::shared_ptr<const Runnable> code = HONE_TRY(given.code(processes, arguments, console));
  const std::vector<Tensor> outputs =
      HONE_TRY(code->run(given.inputs.tensors, {.cancel = &console.cancel()}));
  std::vector<Tensor> judges =
      HONE_TRY(interpret(given.programs, given.devices, given.inputs.tensors,
                         given.inputs.memory_left.native, console.face()));
  std::vector<Expected> interpreted;
  for (size_t i = 0; i < judges.size(); ++i)
    interpreted.push_back({i, std::move(judges[i]), "the interpreter"});
  HONE_TRY(compare_outputs(given.outputs, outputs, interpreted, {}, Differing::fails, console));
  if (expected.empty()) return {};
  return compare_outputs(given.outputs, outputs, expected, tolerance_of(arguments),
                         Differing::fails, console);
}

Status check_on(const Processes& processes, const Arguments& arguments, Console& console) {
  if (names_programs(arguments)) return check_programs(processes, arguments, console);
  const std::optional<PipelinePlan> pipeline = HONE_TRY(given_pipeline(arguments));
  // A pipeline says itself who computes what.
  const std::optional<DeviceOptions> devices =
      pipeline ? std::nullopt : HONE_TRY(device_options(arguments, processes, console));
  if (names_compiled(arguments)) return check_compiled(arguments, console);
  HONE_TRY(refuse_verify(arguments));
  if (arguments.given("model"))
    return usage_error("--model is for compiled models; {} is not one",
                       excerpt(arguments.text("MODEL")));
  HONE_TRY(check_tolerance_options(arguments));
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options, Console::labels()));
  const Source source =
      HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
  const RunInputs inputs =
      HONE_TRY(inputs_on(devices, source, arguments, Engine::contest, console));

  std::shared_ptr<const Runnable> subject;
  if (pipeline) {
    const PlacedModel placed =
        HONE_TRY(pipelined_model(*pipeline, source, inputs, arguments, console));
    subject = HONE_TRY(placed.code(processes, inputs.memory_left.native, arguments, console));
    console.note("{}", placed.how);
  } else if (devices) {
    const DividedModel divided = HONE_TRY(
        divided_model(source.model, inputs, options, *devices, processes, arguments, console));
    subject = divided.runnable;
  } else {
    subject = HONE_TRY(native_model(source.model, inputs, options, console.face()));
  }
  if (!devices || devices->shards || !has_collectives(source.model))
    return check_one(source, inputs, subject, arguments, console);
  const Face face = console.face();
  const Contest contest =
      HONE_TRY(contest_of_devices(source.model, inputs, *devices, subject, face));
  return judge_one(source, inputs, contest, arguments, console);
}

}  // namespace

Status cmd_check(const Arguments& arguments, Console& console) {
  return with_processes(arguments, console, [&](const Processes& processes) {
    return check_on(processes, arguments, console);
  });
}

}  // namespace hone::cli
