#pragma once

#include <cstdint>
#include <span>

#include "ir/op.h"

// The vector math on this machine's numbers, without generated code: what tests measure.

namespace hone::math {

// result[i] = function(x[i]) or function(x[i], y[i]), for the opcodes of functions.h; multiply-adds
// are rounded once (`fused`) or twice. All spans are of one length, y is empty for one operand.
void evaluate(Opcode opcode, bool fused, std::span<const float> x, std::span<const float> y,
              std::span<float> result);
void evaluate(Opcode opcode, bool fused, std::span<const double> x, std::span<const double> y,
              std::span<double> result);

// How far results are from the exact ones, in units in the last place of the exact ones.
struct Accuracy {
  double ulps = 0;  // the highest error; infinite where a NaN, infinity, or sign of zero is wrong
  double x = 0, y = 0;  // where it is
  void include(const Accuracy& other) {
    if (other.ulps > ulps) *this = other;
  }
};

// The accuracy of evaluate(), against double functions of the C library for f32 and long double
// ones for f64.
struct Accuracies {
  Accuracy fused, plain;
  void include(const Accuracies& other) {
    fused.include(other.fused);
    plain.include(other.plain);
  }
};
Accuracies measure(Opcode opcode, std::span<const float> x, std::span<const float> y);
Accuracies measure(Opcode opcode, std::span<const double> x, std::span<const double> y);

}  // namespace hone::math
