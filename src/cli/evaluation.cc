#include "cli/evaluation.h"

#include "cli/console.h"
#include "ir/reference/evaluate_model.h"
#include "ir/summary.h"

namespace hone::cli {

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
                                        EvalOptions options, Console& console) {
  if (const Graph* graph = single_graph(model)) {
    const Graph bound = HONE_TRY(specialize(*graph, inputs.bindings));
    return evaluate_with_progress(bound, inputs.tensors, options, console);
  }
  const Model bound = HONE_TRY(specialize(model, inputs.bindings));
  // No progress: how often a segment runs depends on the data.
  options.cancel = &console.cancel();
  return evaluate_model(bound, inputs.tensors, options);
}

Result<std::vector<Tensor>> evaluate_with_progress(const Graph& graph,
                                                   std::span<const Tensor> inputs,
                                                   EvalOptions options, Console& console) {
  const std::unique_ptr<Progress> progress = console.progress();
  options.progress = progress.get();
  options.cancel = &console.cancel();
  return evaluate(graph, inputs, options);
}

Status check_tolerance_options(const Arguments& arguments) {
  if (!arguments.given("expect") && (arguments.given("rtol") || arguments.given("atol")))
    return usage_error("--rtol and --atol need --expect");
  return {};
}

}  // namespace hone::cli
