#pragma once

#include <vector>

namespace hone {

// The gain of one choice over another: the logarithm of the ratio of their prices, and how far it
// may be off.
struct Gain {
  double mean = 0;
  double deviation = 0;  // a standard deviation
};

// How many deviations the mean of a gain has to be. Then the choice is cheaper with this
// probability, from 0.5 to 1, if errors are normal: 1.28 for 0.9.
double deviations_for(double sureness);

inline constexpr double kUsualSureness = 0.9;

// The cost of a part of a program by the voices of a price, as the networks of a learned one. Each
// voice prices all parts, so their differences say how unsure a sum is.
struct Votes {
  std::vector<double> seconds = {};  // by voice; one voice: all say so
  // Errors that no voice knows of, in seconds squared. Parts have independent ones.
  double variance = 0;

  // So often a part that costs this.
  void add(const Votes& part, double times);
};

// The gain of `other` over `usual`. Both are positive.
Gain gain_of(const Votes& other, const Votes& usual);

}  // namespace hone
