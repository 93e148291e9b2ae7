#include "front/hlo/checks.h"
#include "ir/reference/evaluate_model.h"
#include "oracle/conformance.h"

namespace hone {
namespace {

// Without rounding between the steps. Empty: it cannot be had.
std::vector<Tensor> exact_outputs(const Model& model, const CheckedProgram& program,
                                  const CaseOptions& options) {
  EvalOptions evaluation;
  evaluation.numerics = Numerics::wide;
  evaluation.max_bytes = options.max_bytes;
  Result<std::vector<Tensor>> outputs = evaluate_model(model, program.inputs, evaluation);
  return outputs.ok() ? std::move(*outputs) : std::vector<Tensor>();
}

}  // namespace

CaseOutcome run_checked_program(const std::filesystem::path& file, const CaseOptions& options) {
  Result<CheckedProgram> program =
      load_checked_program(file, options.program, options.mode == CaseMode::constants);
  if (!program.ok()) return failure(program.error());
  const Model model = model_of(std::move(program->graph));
  EvalOptions evaluation;
  evaluation.numerics = Numerics::rounded;
  evaluation.max_bytes = options.max_bytes;
  const auto run = [&]() -> Result<std::vector<Tensor>> {
    if (!options.compile) return evaluate_model(model, program->inputs, evaluation);
    return HONE_TRY(options.compile(model))->run(program->inputs);
  };
  const Result<std::vector<Tensor>> outputs = run();
  if (!outputs.ok()) return failure(outputs.error());
  CaseOutcome outcome;
  outcome.result = CaseClass::pass;
  std::vector<Tensor> exact;
  for (const hlo::Check& check : program->checks) {
    const size_t got = 2 * static_cast<size_t>(outcome.data_sets++);
    outcome.reason = disagreement(check, (*outputs)[got], (*outputs)[got + 1]);
    if (outcome.reason.empty()) continue;
    // The answer may be the one that is farther off: sums depend on their order.
    if (exact.empty()) exact = exact_outputs(model, *program, options);
    if (!exact.empty())
      outcome.reason = disagreement(check, (*outputs)[got], (*outputs)[got + 1], &exact[got]);
    if (outcome.reason.empty()) continue;
    outcome.result = CaseClass::wrong;
    outcome.where = check.place;
    break;
  }
  return outcome;
}

}  // namespace hone
