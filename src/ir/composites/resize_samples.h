#pragma once

#include <vector>

#include "ir/op.h"

// Tells which elements of its source a resampled axis mixes, and with which weights. `resize` is
// this and nothing else, axis by axis.

namespace hone {

// One axis that is resampled; sizes are static.
struct ResizeAxis {
  int index = 0;
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;  // out / in, or as given
  double roi_start = 0;
  double roi_end = 1;
};

enum class ResizeMode : uint8_t { nearest, linear, cubic };
enum class ResizeCoordinates : uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_crop_and_resize
};
enum class ResizeRounding : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

// As attributes spell them.
const char* name(ResizeMode mode);
const char* name(ResizeCoordinates coordinates);
const char* name(ResizeRounding rounding);

// The facts that all axes share: attributes of `resize`.
struct Sampling {
  ResizeMode mode = ResizeMode::nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::half_pixel;
  ResizeRounding nearest = ResizeRounding::round_prefer_floor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;

  Sampling() = default;
  explicit Sampling(Op resize);
  bool crops() const { return coordinates == ResizeCoordinates::tf_crop_and_resize; }
};

// For each result position: `taps` source positions with their weights.
struct Samples {
  size_t taps = 1;
  Ints index;                  // [taps][out]
  std::vector<double> weight;  // [taps][out]
  std::vector<bool> outside;   // [out]: the extrapolation value stands there
};

struct SampleTap {
  int64_t index = 0;
  double weight = 1;
};

// The source coordinate of result position `i`.
double resize_source(const ResizeAxis& axis, ResizeCoordinates coordinates, int64_t i);
// Sets `taps` to those of result position `i`; as many for each.
void sample_taps(const ResizeAxis& axis, const Sampling& sampling, int64_t i,
                 std::vector<SampleTap>& taps);
Samples samples_of(const ResizeAxis& axis, const Sampling& sampling);

}  // namespace hone
