#include "measure/samples.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hone {
namespace {

std::vector<double> least_at_places(std::span<const double> samples) {
  std::vector<double> least(std::min(kPlaces, samples.size()), INFINITY);
  for (size_t i = 0; i < samples.size(); ++i)
    least[i % kPlaces] = std::min(least[i % kPlaces], samples[i]);
  std::ranges::sort(least);
  return least;
}

// For three normal numbers: the deviation of their median for one of their range.
constexpr double kDeviationOfMedian = 0.396;

}  // namespace

double typical(std::span<const double> samples) {
  const std::vector<double> least = least_at_places(samples);
  return least.empty() ? INFINITY : least[least.size() / 2];
}

double relative_noise(std::span<const double> samples) {
  if (samples.size() < kPlaces) return kNoiseOfOne;
  const std::vector<double> least = least_at_places(samples);
  return kDeviationOfMedian * (least.back() - least.front()) / least[least.size() / 2];
}

}  // namespace hone
