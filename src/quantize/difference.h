#pragma once

#include <optional>
#include <span>

#include "base/error.h"
#include "tensor/tensor.h"

namespace hone::quantize {

// How far outputs are from those of the f32 model.
struct Difference {
  // The root mean square of the difference over that of the f32 output; the worst output counts.
  // For integers and bools: the share of elements that differ.
  double error = 0;
  double largest = 0;  // of a single element, of all reals
  // For outputs of two dims: rows whose largest element is at the same place, of all rows.
  std::optional<double> equal_best = {};

  // The worse of both.
  void add(const Difference& other);
};

// An error if the f32 output has a number that is not finite; another one where it is counts as an
// infinite difference.
Result<Difference> difference(std::span<const Tensor> actual, std::span<const Tensor> expected);

}  // namespace hone::quantize
