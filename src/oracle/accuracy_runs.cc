#include "oracle/accuracy_runs.h"

#include <algorithm>

#include "base/rng.h"

namespace hone {
namespace {

using Tensors = Contest::Tensors;

// Nearly the same reals; other inputs as they are.
Tensors nearly(const Tensors& inputs, Rng& rng) {
  constexpr double kNear = 1e-3;
  Tensors result = inputs;
  for (Tensor& input : result) {
    if (!is_real(input.dtype())) continue;
    std::vector<double> numbers(static_cast<size_t>(input.elements()));
    input.read_reals(0, std::span<double>(numbers));
    for (double& number : numbers) number *= 1 - kNear * rng.uniform();
    input = Tensor::from_reals(input.type(), numbers);
  }
  return result;
}

// Indexed by output.
Result<std::vector<AccuracyRun>> run_on(const Contest& contest, const Tensors& inputs) {
  const Tensors actual = HONE_TRY(contest.native(inputs));
  const Tensors wide = HONE_TRY(contest.reference(inputs, Numerics::wide));
  // A plain way that comes to no result, as a loop that does not converge in fp32, excuses nothing.
  const auto plain = [&](Numerics numerics) -> Result<Tensors> {
    Result<Tensors> result = contest.reference(inputs, numerics);
    if (result.ok() || result.error().code() == ErrorCode::interrupted) return result;
    return wide;
  };
  const Tensors fp32 = HONE_TRY(plain(Numerics::fp32));
  const Tensors rounded = HONE_TRY(plain(Numerics::rounded));
  std::vector<AccuracyRun> runs;
  for (size_t i = 0; i < actual.size(); ++i)
    runs.push_back({actual[i], wide[i], fp32[i], rounded[i]});
  return runs;
}

// The inputs of the runs after the first one.
Result<std::vector<Tensors>> more_inputs(const Contest& contest, const Tensors& inputs) {
  std::vector<Tensors> more;
  Rng rng(0);
  for (uint64_t n = 1; n < kAccuracyRuns; ++n) {
    if (contest.other_inputs) more.push_back(HONE_TRY(contest.other_inputs(n)));
    more.push_back(nearly(inputs, rng));
  }
  return more;
}

}  // namespace

int ContestResult::failed() const {
  const auto failed = [](const Accuracy& one) { return !one.passed(); };
  return static_cast<int>(std::ranges::count_if(outputs, failed));
}

Result<ContestResult> judge(const Contest& contest, const std::vector<Tensor>& inputs) {
  ContestResult result = {.first = HONE_TRY(run_on(contest, inputs)), .outputs = {}};
  std::vector<std::vector<AccuracyRun>> runs;  // by output
  for (const AccuracyRun& run : result.first) {
    runs.push_back({run});
    result.outputs.push_back(HONE_TRY(accuracy(runs.back())));
  }
  if (result.failed() == 0) return result;

  for (const Tensors& others : HONE_TRY(more_inputs(contest, inputs))) {
    const std::vector<AccuracyRun> run = HONE_TRY(run_on(contest, others));
    for (size_t i = 0; i < runs.size(); ++i)
      if (!result.outputs[i].passed()) runs[i].push_back(run[i]);
    ++result.runs;
  }
  for (size_t i = 0; i < runs.size(); ++i)
    if (!result.outputs[i].passed()) result.outputs[i] = HONE_TRY(accuracy(runs[i]));
  return result;
}

}  // namespace hone
