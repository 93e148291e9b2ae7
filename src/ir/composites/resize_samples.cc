#include "ir/composites/resize_samples.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// ---- Coordinates --------------------------------------------------------------------------------

double unbounded_source(const ResizeAxis& a, const std::string& mode, int64_t i) {
  const double x = static_cast<double>(i), in = static_cast<double>(a.in);
  const double out = static_cast<double>(a.out);
  const double half_pixel = (x + 0.5) / a.scale - 0.5;
  if (mode == "half_pixel") return half_pixel;
  if (mode == "pytorch_half_pixel") return a.out > 1 ? half_pixel : 0;
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") return a.out > 1 ? x * (in - 1) / (out - 1) : 0;
  if (mode == "half_pixel_symmetric") {
    // The scaled size need not be whole; the rest is cut off on both sides alike.
    const double adjustment = out / (a.scale * in);
    return in / 2 * (1 - adjustment) + half_pixel;
  }
  const double extent = (a.roi_end - a.roi_start) * (in - 1);  // tf_crop_and_resize
  if (a.out > 1) return a.roi_start * (in - 1) + x * extent / (out - 1);
  return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
}

int64_t nearest_of(double x, const std::string& rounding) {
  double nearest = 0;
  if (rounding == "floor")
    nearest = std::floor(x);
  else if (rounding == "ceil")
    nearest = std::ceil(x);
  else if (rounding == "round_prefer_floor")
    nearest = std::ceil(x - 0.5);
  else
    nearest = std::floor(x + 0.5);
  return static_cast<int64_t>(nearest);
}

// ---- Weights ------------------------------------------------------------------------------------

double linear_kernel(double x) { return std::max(0.0, 1 - std::abs(x)); }

// Keys' cubic convolution; `a` is its slope at 1.
double cubic_kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

}  // namespace

Sampling::Sampling(Op resize)
    : mode(resize.word("mode")),
      coordinates(resize.word("coordinates")),
      nearest(resize.word("nearest")),
      cubic_a(resize.real("cubic_a")),
      exclude_outside(resize.flag("exclude_outside")),
      antialias(resize.flag("antialias")) {}

double resize_source(const ResizeAxis& axis, const std::string& coordinates, int64_t i) {
  // Within what an int64_t holds; that far outside, the edge is all there is.
  constexpr double kFar = 1e15;
  return std::clamp(unbounded_source(axis, coordinates, i), -kFar, kFar);
}

std::vector<SampleTap> sample_taps(const ResizeAxis& a, const Sampling& sampling, int64_t i) {
  const double x = resize_source(a, sampling.coordinates, i);
  auto inside = [&](int64_t at) { return std::clamp<int64_t>(at, 0, a.in - 1); };
  if (sampling.mode == "nearest") return {{inside(nearest_of(x, sampling.nearest)), 1}};
  const bool cubic = sampling.mode == "cubic";
  const double radius = cubic ? 2 : 1;
  // When shrinking with antialias, the kernel is stretched to cover what a result pixel covers.
  const double squeeze = sampling.antialias ? std::min(a.scale, 1.0) : 1;
  const int64_t first = static_cast<int64_t>(std::floor(-radius / squeeze)) + 1;
  const int64_t base = static_cast<int64_t>(std::ceil(x)) - 1;
  std::vector<SampleTap> taps(static_cast<size_t>(2 - 2 * first));
  double sum = 0;
  for (size_t t = 0; t < taps.size(); ++t) {
    const int64_t at = base + first + static_cast<int64_t>(t);
    const double distance = (static_cast<double>(at) - x) * squeeze;
    double weight = cubic ? cubic_kernel(distance, sampling.cubic_a) : linear_kernel(distance);
    if (sampling.exclude_outside && (at < 0 || at >= a.in)) weight = 0;
    taps[t] = {inside(at), weight};
    sum += weight;
  }
  if (sum != 0)
    for (SampleTap& tap : taps) tap.weight /= sum;
  return taps;
}

Samples samples_of(const ResizeAxis& a, const Sampling& sampling) {
  Samples s;
  const bool crops = sampling.coordinates == "tf_crop_and_resize";
  const size_t out = static_cast<size_t>(a.out);
  for (size_t i = 0; i < out; ++i) {
    const int64_t position = static_cast<int64_t>(i);
    const std::vector<SampleTap> taps = sample_taps(a, sampling, position);
    if (i == 0) {
      s.taps = taps.size();
      s.index.resize(s.taps * out);
      s.weight.resize(s.taps * out);
    }
    for (size_t t = 0; t < s.taps; ++t) {
      s.index[t * out + i] = taps[t].index;
      s.weight[t * out + i] = taps[t].weight;
    }
    if (!crops) continue;
    const double x = resize_source(a, sampling.coordinates, position);
    s.outside.push_back(x < 0 || x > static_cast<double>(a.in - 1));
  }
  return s;
}

}  // namespace hone
