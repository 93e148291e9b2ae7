#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "tensor/tensor.h"

namespace hone {

// How far what was computed is from the truth, and how far it may be.
struct Accuracy {
  double error = 0;                   // the largest difference from wide, of finite elements
  double allowed = 0;                 // for real types; others must be equal
  int64_t wrong = 0;                  // elements: too far off, or finite in only one of the two
  size_t run = 0;                     // the one with the largest difference,
  std::optional<int64_t> worst = {};  // and its element

  bool passed() const { return wrong == 0; }
  std::string to_string() const;
};

// An output of a run, and what the reference gives in its modes with real outputs as f64. `rounded`
// counts where it is there: values of fewer bits than 32 on the way to the output are rounded to
// their type, which fp32 does not do.
struct AccuracyRun {
  Tensor actual, wide, fp32;
  std::optional<Tensor> rounded = {};
};

// The default numerics' promise: over runs on at least kAccuracyRuns different inputs, an error of
// at most 4 times that of plain fp32, or of each op rounded to its type, or of 4 units in the last
// place of the output's largest number. Over fewer, these may just have been lucky. An error: types
// do not fit.
inline constexpr int kAccuracyRuns = 5;
Result<Accuracy> accuracy(std::span<const AccuracyRun> runs);

}  // namespace hone
