#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "tensor/tensor.h"

// Compares two tensors. If they do not agree, it says where first, where worst, and which tolerance
// would do.

namespace hone {

// |actual - expected| <= absolute + relative * |expected|. NaN agrees with NaN alone, an infinity
// with itself alone.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

// The difference that two correct computations of a result of this type may have: a few units in
// the last place after a reduction. Integers and bools must be equal.
Tolerance default_tolerance(DType type);

// The tolerance that a user gives.
struct GivenTolerance {
  std::optional<double> relative = {};  // none: by type
  std::optional<double> absolute = {};  // none: by type and scale
};
// The difference that an output of this type may have from numbers that another program wrote. The
// other program rounds its steps in other ways. It may have constants with fewer digits, as the
// ONNX standard does. Relative 1e-3 (f64: 1e-7), and at least a unit in the last place; absolute a
// thousandth of that for the largest of the expected numbers.
Tolerance expected_tolerance(DType type, const Tensor& expected, const GivenTolerance& given = {});
// "rtol 0.001, atol 0.00001 x the largest": of f32, or what is given.
std::string to_string(const GivenTolerance& given);

struct Disagreement {
  int64_t index = 0;  // row-major
  double actual = 0;
  double expected = 0;
  double difference = 0;  // |actual - expected|; infinite if one is NaN, or an infinity is involved
};

struct Comparison {
  Type type;  // of the expected tensor
  Tolerance tolerance;
  int64_t elements = 0;
  int64_t bad = 0;
  std::optional<Disagreement> first;  // of the bad elements
  std::optional<Disagreement> worst;  // farthest beyond the tolerance
  double max_difference = 0;          // over all elements
  // The least value that passes while the other tolerance stays; infinite if none does.
  double passing_absolute = 0;
  double passing_relative = 0;

  bool passed() const { return bad == 0; }
  // One line if it passed, else also the first and the worst element and what would pass.
  std::string to_string() const;
};

// An error of code `mismatch` if the shapes differ, or a real type meets another kind.
Result<Comparison> compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

// "[0, 3, 7]": the place of a row-major index.
std::string index_text(Type type, int64_t index);

}  // namespace hone
