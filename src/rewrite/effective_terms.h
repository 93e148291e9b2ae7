#pragma once

#include "tensor/dim.h"
#include "tensor/tensor.h"

namespace hone {

// The number of terms of equal size that a sum of products with these weights counts as: (sum
// |w|)^2 over sum w^2. Weights of 0 do not count, and of few large ones among small ones only
// those. The dims `summed` are summed over. Features are the places along the other dims. The
// result is the least of all features, but for those of zeros alone. 0: weights are not finite, or
// all are zero. Weights are f32.
double effective_terms(const Tensor& weights, const Ints& summed);

}  // namespace hone
