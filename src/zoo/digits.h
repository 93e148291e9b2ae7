#pragma once

#include <cstdint>

#include "tensor/tensor.h"

// A labelled task of hone's own: digits that are drawn, for training and for the accuracy of models
// with fewer bits. Nobody else's data are needed.

namespace hone {

inline constexpr int64_t kDigitSide = 16;  // pixels

struct DigitSet {
  Tensor images;  // f32[count, side * side]: 0 is paper, 1 is ink
  Tensor labels;  // i64[count]: 0 to 9
};

// Each digit is a few strokes. An image has them with other places of their points, another size,
// slope and width, and with noise. The same seed gives the same images.
DigitSet draw_digits(int64_t count, uint64_t seed);

}  // namespace hone
