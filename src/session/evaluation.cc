#include "session/evaluation.h"

#include "ir/reference/evaluate_model.h"

namespace hone {

Numerics numerics_of(std::string_view name) {
  if (name == "wide") return Numerics::wide;
  return name == "fp32" ? Numerics::fp32 : Numerics::rounded;
}

// Bound first: shapes alone do not tell N and M if an input is f32[N + M].
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        EvalOptions options, const Face& face) {
  options.cancel = face.cancel;
  if (const Graph* graph = single_graph(model)) {
    options.progress = face.progress;
    return evaluate(HONE_TRY(specialize(*graph, inputs.bindings)), inputs.tensors, options);
  }
  // No progress: how often a segment runs depends on the data.
  return evaluate_model(HONE_TRY(specialize(model, inputs.bindings)), inputs.tensors, options);
}

}  // namespace hone
