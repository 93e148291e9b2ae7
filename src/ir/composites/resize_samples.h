#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

// Which elements of its source a resampled axis mixes, with which weights: all that `resize` is,
// axis by axis.

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

// What all axes share: attributes of `resize`.
struct Sampling {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;

  Sampling() = default;
  explicit Sampling(Op resize);
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
double resize_source(const ResizeAxis& axis, const std::string& coordinates, int64_t i);
// The taps of result position `i`; as many for each.
std::vector<SampleTap> sample_taps(const ResizeAxis& axis, const Sampling& sampling, int64_t i);
Samples samples_of(const ResizeAxis& axis, const Sampling& sampling);

}  // namespace hone
