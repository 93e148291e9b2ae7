#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/reference/evaluate.h"
#include "oracle/accuracy.h"

// True if native code is as accurate as fp32: one run, or as many as it takes to say so.

namespace hone {

struct Contest {
  using Tensors = std::vector<Tensor>;
  std::function<Result<Tensors>(const Tensors& inputs)> native;
  // Real outputs as f64.
  std::function<Result<Tensors>(const Tensors& inputs, Numerics)> reference;
  // Inputs of another run, n from 1 on, for what is not given. Null: all inputs are given.
  std::function<Result<Tensors>(uint64_t n)> other_inputs = {};
};

struct ContestResult {
  std::vector<AccuracyRun> first;  // the first run, by output
  std::vector<Accuracy> outputs;
  size_t runs = 1;  // that the outputs were judged by

  int failed() const;  // outputs
};

// In one run plain fp32 may just be lucky. So an output that fails there is judged once more, by
// its errors over kAccuracyRuns runs and more. The runs have other inputs, if there are any, and
// nearly the same ones. Results of nearly the same inputs are about as large and are rounded in
// other ways.
inline constexpr size_t kAccuracyRuns = 5;
Result<ContestResult> judge(const Contest& contest, const std::vector<Tensor>& inputs);

}  // namespace hone
