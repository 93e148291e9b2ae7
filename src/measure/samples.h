#pragma once

#include <cstddef>
#include <span>

// Reads the samples of a race of kernels (tune/kernel_meter.h): sample i was taken at place
// i % kPlaces.

namespace hone {

// Operands lie at this many places in turn.
inline constexpr size_t kPlaces = 3;

// The least at each place, and the median of these. Infinity: there are no samples.
double typical(std::span<const double> samples);

// How far typical() may be off, relative to it, as a standard deviation: by how far the places
// differ. With fewer samples than places it is kNoiseOfOne, the usual excess of one launch over the
// fastest.
double relative_noise(std::span<const double> samples);
inline constexpr double kNoiseOfOne = 0.1;

}  // namespace hone
