#pragma once

#include <cstddef>
#include <span>
#include <vector>

// How well prices order what was measured.

namespace hone {

// Kendall's tau: of all pairs, the share in the right order less that in the wrong one; pairs of
// equal prices count 0, pairs of equal times do not count. 1: the same order. 0: fewer than two.
double kendall_tau(std::span<const double> prices, std::span<const double> seconds);

// The time of the fastest of the `count` cheapest by price, for one of the fastest of all: 1 is
// best. There is one at least.
double regret(std::span<const double> prices, std::span<const double> seconds, size_t count);

// The mean of |price - time| / time.
double mean_error(std::span<const double> prices, std::span<const double> seconds);

// How well prices tell slow from fast: of all pairs of a slow and a fast one, the share in which
// the slow one is dearer; equal prices count half. 0.5 if there are no such pairs.
double area_under_curve(std::span<const double> prices, const std::vector<bool>& is_slow);
// Two clusters, divided where the logarithms of sorted times are farthest apart: which are slow. If
// all times are equal, none is.
std::vector<bool> slow_cluster(std::span<const double> seconds);

}  // namespace hone
