#pragma once

#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "ir/graph.h"

// Bounds on how large and how small the elements of a value may be, by exponents of two. The bounds
// hold for every run whose inputs are as assumed and in which no value is infinite or NaN.

namespace hone {

// Each element is 0 or has a magnitude between 2^low and 2^high. Nothing is known of the default.
struct Magnitude {
  static constexpr double kNone = -std::numeric_limits<double>::infinity();
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  double low = kNone;
  double high = kAny;
  // Terms of a sum may cancel: then `low` is that of the terms, and an element may be smaller by
  // what these were rounded to.
  bool is_sum = true;
  bool is_positive = false;  // no element is below 0

  static Magnitude zero() { return {kAny, kNone, false, true}; }
  bool is_zero() const { return high == kNone; }
  bool operator==(const Magnitude&) const = default;
};

Magnitude magnitude_of(const Tensor& constant);

// The magnitude of one application, by those of its operands. If an op has no row, or a value is
// not a real number, nothing is known; a bool is 0 or 1.
struct MeasuredOp {
  Op op;
  std::span<const Magnitude> operands;
  std::span<const Type> types;  // of the operands
  Type result;
};
Magnitude magnitude_of(const MeasuredOp& measured);

// The magnitudes of all values of a graph. Two kinds of quotients have bounds of their own. A
// quotient by a sum of what is divided, as in softmax, is at most 1. A value divided by its own
// mean square, as in norms, is bounded too.
struct MagnitudeSources {
  std::function<Magnitude(ValueId input)> input;
  std::function<Magnitude(const Tensor&)> constant;
};
std::vector<Magnitude> magnitudes_of(const Graph& graph, const MagnitudeSources& sources);

}  // namespace hone
