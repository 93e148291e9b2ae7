#include "ir/composites/resize_samples.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace hone {
namespace {

// ---- Coordinates --------------------------------------------------------------------------------

double unbounded_source(const ResizeAxis& a, ResizeCoordinates coordinates, int64_t i) {
  const double x = static_cast<double>(i), in = static_cast<double>(a.in);
  const double out = static_cast<double>(a.out);
  const double half_pixel = (x + 0.5) / a.scale - 0.5;
  switch (coordinates) {
    case ResizeCoordinates::half_pixel: return half_pixel;
    case ResizeCoordinates::half_pixel_symmetric:
      // The scaled size need not be whole; the rest is cut off on both sides alike.
      return in / 2 * (1 - out / (a.scale * in)) + half_pixel;
    case ResizeCoordinates::pytorch_half_pixel: return a.out > 1 ? half_pixel : 0;
    case ResizeCoordinates::align_corners: return a.out > 1 ? x * (in - 1) / (out - 1) : 0;
    case ResizeCoordinates::asymmetric: return x / a.scale;
    case ResizeCoordinates::tf_crop_and_resize: break;
  }
  if (a.out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
  const double extent = (a.roi_end - a.roi_start) * (in - 1);
  return a.roi_start * (in - 1) + x * extent / (out - 1);
}

double nearest_of(double x, ResizeRounding rounding) {
  switch (rounding) {
    case ResizeRounding::round_prefer_floor: return std::ceil(x - 0.5);
    case ResizeRounding::round_prefer_ceil: return std::floor(x + 0.5);
    case ResizeRounding::floor: return std::floor(x);
    case ResizeRounding::ceil: break;
  }
  return std::ceil(x);
}

// ---- Weights ------------------------------------------------------------------------------------

double linear_kernel(double x) { return std::max(0.0, 1 - std::abs(x)); }

// Keys' cubic convolution; `a` is its slope at 1. Written by its roots, so that it is exactly 0
// there: a point on an element takes that one alone.
double cubic_kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return (1 - x) * (1 + x - (a + 2) * x * x);
  if (x < 2) return a * (x - 1) * (x - 2) * (x - 2);
  return 0;
}

// ---- Names --------------------------------------------------------------------------------------

// In the order of their enums.
constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
constexpr const char* kCoordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                        "pytorch_half_pixel", "align_corners",
                                        "asymmetric",         "tf_crop_and_resize"};
constexpr const char* kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

// The op's words are checked before: one of the names is it.
template <class Enum>
Enum named(std::span<const char* const> names, const std::string& word) {
  return static_cast<Enum>(std::ranges::find(names, word) - names.begin());
}

}  // namespace

const char* name(ResizeMode mode) { return kModes[static_cast<size_t>(mode)]; }
const char* name(ResizeCoordinates coordinates) {
  return kCoordinates[static_cast<size_t>(coordinates)];
}
const char* name(ResizeRounding rounding) { return kRoundings[static_cast<size_t>(rounding)]; }

Sampling::Sampling(Op resize)
    : mode(named<ResizeMode>(kModes, resize.word("mode"))),
      coordinates(named<ResizeCoordinates>(kCoordinates, resize.word("coordinates"))),
      nearest(named<ResizeRounding>(kRoundings, resize.word("nearest"))),
      cubic_a(resize.real("cubic_a")),
      exclude_outside(resize.flag("exclude_outside")),
      antialias(resize.flag("antialias")) {}

double resize_source(const ResizeAxis& axis, ResizeCoordinates coordinates, int64_t i) {
  // Within what an int64_t holds; that far outside, the edge is all there is.
  constexpr double kFar = 1e15;
  return std::clamp(unbounded_source(axis, coordinates, i), -kFar, kFar);
}

void sample_taps(const ResizeAxis& a, const Sampling& sampling, int64_t i,
                 std::vector<SampleTap>& taps) {
  const double x = resize_source(a, sampling.coordinates, i);
  auto inside = [&](int64_t at) { return std::clamp<int64_t>(at, 0, a.in - 1); };
  if (sampling.mode == ResizeMode::nearest) {
    taps.assign(1, {inside(static_cast<int64_t>(nearest_of(x, sampling.nearest))), 1});
    return;
  }
  const bool cubic = sampling.mode == ResizeMode::cubic;
  const double radius = cubic ? 2 : 1;
  // When shrinking with antialias, the kernel is stretched to cover what a result pixel covers.
  const double squeeze = sampling.antialias ? std::min(a.scale, 1.0) : 1;
  const int64_t first = static_cast<int64_t>(std::floor(-radius / squeeze)) + 1;
  const int64_t base = static_cast<int64_t>(std::ceil(x)) - 1;
  taps.resize(static_cast<size_t>(2 - 2 * first));
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
}

Samples samples_of(const ResizeAxis& a, const Sampling& sampling) {
  Samples s;
  std::vector<SampleTap> taps;
  const size_t out = static_cast<size_t>(a.out);
  for (size_t i = 0; i < out; ++i) {
    const int64_t position = static_cast<int64_t>(i);
    sample_taps(a, sampling, position, taps);
    if (i == 0) {
      s.taps = taps.size();
      s.index.resize(s.taps * out);
      s.weight.resize(s.taps * out);
    }
    for (size_t t = 0; t < s.taps; ++t) {
      s.index[t * out + i] = taps[t].index;
      s.weight[t * out + i] = taps[t].weight;
    }
    if (!sampling.crops()) continue;
    const double x = resize_source(a, sampling.coordinates, position);
    s.outside.push_back(x < 0 || x > static_cast<double>(a.in - 1));
  }
  return s;
}

}  // namespace hone
