#include "session/evaluation.h"

#include <algorithm>

#include "base/checked_math.h"
#include "ir/reference/evaluate_model.h"
#include "session/source.h"
#include "zoo/inputs.h"

namespace hone {

Numerics numerics_of(std::string_view name) {
  if (name == "wide") return Numerics::wide;
  return name == "fp32" ? Numerics::fp32 : Numerics::rounded;
}

// Bound first: shapes alone do not tell N and M if an input is f32[N + M].
Result<std::vector<Tensor>> evaluate_on(const Model& model, const RunInputs& inputs,
                                        EvalOptions options, const Face& face) {
  options.cancel = face.cancel;
  options.max_bytes = inputs.memory_left.reference;
  if (const Graph* graph = single_graph(model)) {
    options.progress = face.progress;
    return evaluate(HONE_TRY(specialize(*graph, inputs.bindings)), inputs.tensors, options);
  }
  // No progress: how often a segment runs depends on the data.
  for (const Tensor& input : inputs.tensors)  // which segments hold, too
    options.max_bytes = checked_add(options.max_bytes, input.byte_size()).value_or(INT64_MAX);
  return evaluate_model(HONE_TRY(specialize(model, inputs.bindings)), inputs.tensors, options);
}

Contest contest_of(const Model& model, const RunInputs& inputs,
                   std::shared_ptr<const Runnable> native, const Face& face) {
  using Tensors = Contest::Tensors;
  Contest contest;
  contest.native = [native = std::move(native), cancel = face.cancel](const Tensors& tensors) {
    return native->run(tensors, {.cancel = cancel});
  };
  contest.reference = [&](const Tensors& tensors, Numerics numerics) {
    RunInputs run = inputs;
    run.tensors = tensors;
    return evaluate_on(model, run, {.numerics = numerics, .real_outputs_as_f64 = true}, face);
  };
  if (std::ranges::find(inputs.is_random, true) == inputs.is_random.end()) return contest;
  contest.other_inputs = [&](uint64_t n) -> Result<Tensors> {
    Tensors others = HONE_TRY(random_inputs(signature_of(model), inputs.seed + n, inputs.bindings));
    for (size_t i = 0; i < others.size(); ++i)
      if (!inputs.is_random[i]) others[i] = inputs.tensors[i];
    return others;
  };
  return contest;
}

}  // namespace hone
