#pragma once

#include <vector>

#include "ir/composites/resize_samples.h"

namespace hone {

// A summand of a resampled axis: the source positions and their weights (one: for all positions).
struct ResizeTerm {
  Ints index;
  std::vector<double> weight;

  double weight_at(size_t i) const { return weight[weight.size() == 1 ? 0 : i]; }
};

// How the one weight of all positions is compared: normal forms may have rounded it once more.
enum class Splats : uint8_t { exact, close };

// An axis as it stands in a graph.
struct ResampledAxis {
  int axis = 0;
  int64_t in = 0;
  int64_t out = 0;
  DType dtype = DType::f32;  // weights are rounded to it
  std::vector<ResizeTerm> terms;
  std::vector<bool> outside;  // empty: nowhere

  // As the expansion would have it.
  bool is_given_by(const ResizeAxis& axis, const Sampling& sampling, Splats splats) const;
};

}  // namespace hone
