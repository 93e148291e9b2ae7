#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "tensor/tensor.h"

namespace hone {

// Tells how far outputs are from the truth, and how far they may be.
struct Accuracy {
  double error = 0;                   // the largest difference from wide, of finite elements
  double allowed = 0;                 // for real types; others must be equal
  int64_t wrong = 0;                  // elements: too far off, or finite in only one of the two
  size_t run = 0;                     // the one with the largest difference,
  std::optional<int64_t> worst = {};  // and its element
  // "" or why elements, or the shape, differ from wide and yet are not wrong.
  std::string remark = {};

  bool passed() const { return wrong == 0; }
  std::string to_string() const;
};

// An output of a run, and what the reference gives in its modes with real outputs as f64. Plain
// ways to compute are fp32 and, where it is there, `rounded`. Values of fewer bits than 32 on the
// way to the output are rounded to their type, which fp32 does not do.
struct AccuracyRun {
  Tensor actual, wide, fp32;
  std::optional<Tensor> rounded = {};
};

// The promise of the default numerics, over runs on different inputs. The error is at most 4 times
// that of a plain way, or 4 units in the last place of the output's largest number.
//
// An f64 output is held to f64: fp32's error counts as it would be with the bits of f64. If
// `rounded` is not wide there, values of fewer bits are on the way, and it counts as it is.
//
// Where rounding decides, a plain way may come to another integer, or to another shape, as the
// number of boxes above a threshold. A plain way is not wrong there.
//
// An error: element types do not fit.
Result<Accuracy> accuracy(std::span<const AccuracyRun> runs);

}  // namespace hone
