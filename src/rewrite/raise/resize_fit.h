#pragma once

#include <optional>

#include "rewrite/raise/resampled_axis.h"

// From the samples of a resampled axis back to the attributes of `resize` that give them.

namespace hone {

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
