#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "ir/tensor.h"

namespace hone {

// How far what was computed is from the truth, and how far it may be.
struct Accuracy {
  double error = 0;                   // the largest difference from wide, of finite elements
  double allowed = 0;                 // for real types; others must be equal
  int64_t wrong = 0;                  // elements: too far off, or finite in only one of the two
  std::optional<int64_t> worst = {};  // the element with the largest difference

  bool passed() const { return wrong == 0; }
  std::string to_string() const;
};

// The default numerics' promise: an error of at most 4 times that of plain fp32, or of 4 units in
// the last place of the output's largest number. `wide` and `fp32` are what the reference gives in
// these modes with real outputs as f64. An error: the types do not fit.
Result<Accuracy> accuracy(const Tensor& actual, const Tensor& wide, const Tensor& fp32);

}  // namespace hone
