#pragma once

#include <cstddef>
#include <span>

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

}  // namespace hone
