#pragma once

#include <optional>
#include <vector>

#include "ir/composites/resize_samples.h"

// From the samples of a resampled axis back to the attributes of `resize` that give them.

namespace hone {

// A summand of a resampled axis: the source positions and their weights (one: for all positions).
struct ResizeTerm {
  Ints index;
  std::vector<double> weight;
};

// An axis as it stands in a graph.
struct ResampledAxis {
  int axis = 0;
  int64_t in = 0;
  int64_t out = 0;
  DType dtype = DType::f32;  // weights are rounded to it
  std::vector<ResizeTerm> terms;
  std::vector<bool> outside;  // empty: nowhere

  // As the expansion would have it.
  bool is_given_by(const ResizeAxis& axis, const Sampling& sampling) const;
};

struct ResizeFreedom {
  bool scale = false;    // other than out / in
  bool roi = false;      // other than the whole
  bool cubic_a = false;  // other than the sampling's
};

struct ResizeFit {
  ResizeAxis axis;
  double cubic_a = 0;
};

// The simplest parameters that give the samples exactly.
std::optional<ResizeFit> fit_resize(const ResampledAxis& seen, const Sampling& sampling,
                                    ResizeFreedom freedom);

}  // namespace hone
