#pragma once

#include <array>

#include "codegen/math/algebra.h"
#include "ir/op.h"

// Counts the steps of the functions, for the table of docs/math.md. Prices have rougher numbers of
// their own (src/cost), which sees no code.

namespace hone::math {

// How often each step is done, by the width of its operands; constants are free.
struct StepCounts {
  std::array<int, kSteps> in_32 = {}, in_64 = {};  // by Step

  int total_32() const;
  int total_64() const;
};

// Counts for a function of functions.h, of f32 or f64. One trip of a loop is counted.
StepCounts count_steps(Opcode opcode, DType dtype);

}  // namespace hone::math
