#include <optional>
#include <system_error>
#include <thread>

#include "front/hlo/checks.h"
#include "ir/reference/evaluate.h"
#include "oracle/conformance.h"
#include "transport/threads.h"

namespace hone {
namespace {

// The outputs of each device.
using DeviceOutputs = std::vector<std::vector<Tensor>>;

Result<DeviceOutputs> by_reference(const CheckedProgram& program, const CaseOptions& options,
                                   Numerics numerics) {
  const EvalOptions evaluation = {.numerics = numerics, .max_bytes = options.max_bytes};
  const std::vector<std::vector<Tensor>> inputs(static_cast<size_t>(program.devices),
                                                program.inputs);
  return evaluate_spmd(program.graph, inputs, evaluation);
}

// Each device is a thread; they meet in the collectives of the program.
Result<DeviceOutputs> by_code(const CheckedProgram& program, const CaseOptions& options) {
  const std::shared_ptr<const Runnable> code =
      HONE_TRY(options.compile(model_of(Graph(program.graph))));
  if (program.devices == 1) return DeviceOutputs{HONE_TRY(code->run(program.inputs))};
  const std::unique_ptr<Transport> transport = HONE_TRY(make_thread_transport(program.devices));
  std::vector<std::optional<Result<std::vector<Tensor>>>> results(
      static_cast<size_t>(program.devices));
  const auto run = [&](int32_t device) {
    results[static_cast<size_t>(device)] =
        code->run(program.inputs, {.place = {device, transport.get()}});
  };
  std::vector<std::thread> threads;
  for (int32_t d = 0; d < program.devices; ++d) {
    try {
      threads.emplace_back(run, d);
    } catch (const std::system_error& error) {
      results[static_cast<size_t>(d)] = over_limit("the system gives no thread: {}", error.what());
      transport->cancel(results[static_cast<size_t>(d)]->error());
    }
  }
  for (std::thread& thread : threads) thread.join();
  DeviceOutputs outputs;
  for (auto& result : results) outputs.push_back(HONE_TRY(*std::move(result)));
  return outputs;
}

}  // namespace

CaseOutcome run_checked_program(const std::filesystem::path& file, const CaseOptions& options) {
  Result<CheckedProgram> program =
      load_checked_program(file, options.program, options.mode == CaseMode::constants);
  if (!program.ok()) return failure(program.error());
  const Result<DeviceOutputs> outputs = options.compile
                                            ? by_code(*program, options)
                                            : by_reference(*program, options, Numerics::rounded);
  if (!outputs.ok()) return failure(outputs.error());
  CaseOutcome outcome;
  outcome.result = CaseClass::pass;
  std::optional<Result<DeviceOutputs>> exact;  // without rounding between the steps
  for (size_t i = 0; i < program->checks.size(); ++i) {
    const hlo::Check& check = program->checks[i];
    const size_t got = 2 * i;
    ++outcome.data_sets;
    for (size_t d = 0; d < outputs->size(); ++d) {
      const std::vector<Tensor>& own = (*outputs)[d];
      outcome.reason = disagreement(check, own[got], own[got + 1]);
      if (outcome.reason.empty()) continue;
      // The answer may be the one that is farther off: sums depend on their order.
      if (!exact) exact = by_reference(*program, options, Numerics::wide);
      if (exact->ok())
        outcome.reason = disagreement(check, own[got], own[got + 1], &(**exact)[d][got]);
      if (outcome.reason.empty()) continue;
      outcome.result = CaseClass::wrong;
      outcome.where = check.place;
      return outcome;
    }
  }
  return outcome;
}

}  // namespace hone
