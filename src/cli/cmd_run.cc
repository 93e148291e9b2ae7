#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "ir/model.h"
#include "ir/reference/evaluate.h"
#include "ir/reference/evaluate_model.h"
#include "report/summary.h"

#include <chrono>

namespace hone::cli {
namespace {

Numerics numerics_of(std::string_view text) {
  if (text == "wide") return Numerics::wide;
  return text == "fp32" ? Numerics::fp32 : Numerics::rounded;
}

std::vector<std::string> names_of_outputs(const Model& model) {
  if (const Graph* graph = single_graph(model)) return output_names(*graph);
  std::vector<std::string> names;
  for (const ModelValue& output : model.outputs) names.push_back(output.name);
  return names;
}

// Bound first: shapes alone do not tell N and M if an input is f32[N + M].
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        Numerics numerics, Console& console) {
  if (const Graph* graph = single_graph(model)) {
    const Graph bound = HONE_TRY(specialize(*graph, inputs.bindings));
    return evaluate_with_progress(bound, inputs.tensors, numerics, console);
  }
  const Model bound = HONE_TRY(specialize(model, inputs.bindings));
  // No progress: how often a segment runs depends on the data.
  EvalOptions options;
  options.numerics = numerics;
  options.cancel = &console.cancel();
  return evaluate_model(bound, inputs.tensors, options);
}

}  // namespace

Result<std::vector<Tensor>> evaluate_with_progress(const Graph& graph,
                                                   std::span<const Tensor> inputs,
                                                   Numerics numerics, Console& console) {
  const std::unique_ptr<Progress> progress = console.progress();
  EvalOptions options;
  options.numerics = numerics;
  options.progress = progress.get();
  options.cancel = &console.cancel();
  return evaluate(graph, inputs, options);
}

std::string outputs_table(std::span<const std::string> names, std::span<const Tensor> outputs) {
  TextTable table("llrrrl", {"output", "type", "min", "mean", "max", "first elements"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorStatistics facts = statistics(outputs[i]);
    std::string elements = first_elements(outputs[i], 4);
    if (facts.nans > 0)
      elements += fmt::format("  ({} of {} are NaN)", facts.nans, outputs[i].elements());
    table.add_row({escape(names[i]), outputs[i].type().to_string(),
                   fmt::format("{:.4g}", facts.min), fmt::format("{:.4g}", facts.mean),
                   fmt::format("{:.4g}", facts.max), elements});
  }
  return table.to_string();
}

Status cmd_run(const Arguments& arguments, Console& console) {
  const Model model = HONE_TRY(load_model_source(arguments.text("MODEL"), console));
  const Graph face = face_of(model);
  const std::vector<std::string> names = names_of_outputs(model);

  // All that can be wrong with the command line is found before the work.
  if (arguments.given("output"))
    HONE_TRY(check_output_path(names.size(), arguments.text("output")));
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(names, arguments.text("expect")));
  } else if (arguments.given("rtol") || arguments.given("atol")) {
    return usage_error("--rtol and --atol need --expect");
  }
  const RunInputs inputs = HONE_TRY(resolve_inputs(face, arguments, console));

  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> outputs =
      HONE_TRY(evaluate_on(model, inputs, numerics_of(arguments.text("numerics")), console));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  console.write(outputs_table(names, outputs));
  console.note("{} numerics, {}", arguments.text("numerics"), format_seconds(elapsed.count()));
  if (arguments.given("output"))
    HONE_TRY(write_outputs(names, outputs, arguments.text("output"), console));
  if (expected.empty()) return {};
  GivenTolerance tolerance;
  if (arguments.given("rtol")) tolerance.relative = arguments.real("rtol");
  if (arguments.given("atol")) tolerance.absolute = arguments.real("atol");
  return compare_outputs(names, outputs, expected, tolerance, console);
}

}  // namespace hone::cli
