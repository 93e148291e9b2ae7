#include "base/hash.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evaluation.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "cli/stages.h"
#include "cli/timing.h"
#include "ir/summary.h"
#include "report/accuracy.h"
#include "report/summary_text.h"
#include "zoo/inputs.h"

namespace hone::cli {
namespace {

// A real network, small enough that its first result is there in seconds.
constexpr std::string_view kModel = "zoo:squeezenet";
constexpr double kSeconds = 1;  // of measuring

// Of the bits of all outputs: equal if nothing has changed.
uint64_t digest(std::span<const Tensor> tensors) {
  Hasher hasher;
  for (const Tensor& tensor : tensors) hasher.add(tensor.content_hash());
  return hasher.value();
}

// A row per stage: how long it took, and what it made.
Result<std::string> stage_table(std::span<const StageTime> times, Compilation& compilation,
                                const Target& target) {
  TextTable table("lrl", {"stage", "time", "made"});
  for (const StageTime& time : times) {
    const std::string made = HONE_TRY(made_by(time.stage, compilation, target));
    table.add_row({std::string(name(time.stage)), format_seconds(time.seconds), made});
  }
  return table.to_string();
}

// Holds the outputs against the reference; a row each.
Result<std::string> accuracy_table(const Graph& graph, std::span<const Tensor> inputs,
                                   std::span<const Tensor> outputs, Console& console,
                                   bool& is_good) {
  std::vector<Tensor> reference[2];
  for (size_t i = 0; i < 2; ++i) {
    const Numerics numerics = i == 0 ? Numerics::wide : Numerics::fp32;
    reference[i] = HONE_TRY(evaluate_with_progress(
        graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true}, console));
  }
  TextTable table("llrrl", {"output", "type", "error", "allowed", ""});
  const std::vector<std::string> names = output_names(graph);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const AccuracyRun run = {outputs[i], reference[0][i], reference[1][i]};
    const Accuracy result = HONE_TRY(accuracy({&run, 1}));
    is_good = is_good && result.passed();
    table.add_row({names[i], outputs[i].type().to_string(), fmt::format("{:.3g}", result.error),
                   fmt::format("{:.3g}", result.allowed), result.passed() ? "ok" : "WRONG"});
  }
  return table.to_string();
}

}  // namespace

// What `hone` does without a command: the whole way of one model.
Status cmd_demo(const Arguments& arguments, Console& console) {
  const bool is_given = arguments.command().name == "demo" && arguments.given("MODEL");
  const std::string model = is_given ? arguments.text("MODEL") : std::string(kModel);
  // Times are those of the work, unless a cache is asked for.
  const NativeOptions native = HONE_TRY(native_options(arguments, console, DefaultCache::none));
  HONE_TRY(check_runs_here(native.target));
  const Source source = HONE_TRY(load_model_source(model, sizes_of(arguments), console));
  const Graph* open = single_graph(source.model);
  if (open == nullptr) return no_single_graph(source.model, "'hone demo'");
  const Bindings sizes = HONE_TRY(all_size_bindings(*open, source.open, console));
  const Graph graph = HONE_TRY(specialize(*open, sizes));

  std::vector<StageTime> times;
  CompileOptions options = HONE_TRY(compile_options(graph, source.model, sizes, native));
  options.cancel = &console.cancel();
  options.observer = noting(times);
  Compilation compilation(graph, native.target, options);
  HONE_TRY(compilation.plan());

  // Describe, once nothing can be wrong with the command line any more.
  console.print("hone {}: {}\n\n", HONE_VERSION, console.styled(Style::bold, model));
  console.print("{}\n", summary_text(HONE_TRY(summarize(graph))));

  // Compile.
  const std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  console.print("{}\n", HONE_TRY(stage_table(times, compilation, native.target)));

  // Check.
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 0));
  const std::vector<Tensor> outputs = HONE_TRY(executable->run(inputs));
  bool is_good = true;
  console.print("{}\n", HONE_TRY(accuracy_table(graph, inputs, outputs, console, is_good)));

  // Measure.
  const Timing timing = HONE_TRY(measure(
      kSeconds, console.cancel(),
      [&]() -> Status {
        HONE_TRY(executable->run(inputs));
        return {};
      }));
  console.print("native  {}, digest {:016x}\n\n", timing.to_string(), digest(outputs));
  console.write(
      "Next:\n"
      "  hone zoo list                     the built-in models\n"
      "  hone demo model.onnx              the same for a model of yours\n"
      "  hone compile zoo:mlp --emit plan  every decision, as text to edit\n"
      "  hone help                         all commands\n");
  if (is_good) return {};
  return Error(ErrorCode::mismatch, "native code is less accurate than allowed");
}

}  // namespace hone::cli
