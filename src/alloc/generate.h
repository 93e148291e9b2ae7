#pragma once

#include "alloc/problem.h"
#include "base/rng.h"

// Problems to train, test and measure on.

namespace hone {

constexpr int64_t kMaxGuillotineSteps = int64_t{1} << 30;
constexpr int64_t kMaxGuillotineCapacity = int64_t{1} << 50;

struct GuillotineOptions {
  int64_t buffers = 200;  // at most a quarter of steps times moments
  int64_t steps = 1024;   // sizes are multiples of a so manieth of the capacity
  int64_t moments = 0;    // of time; 0: lives are multiples of what sizes are, in a time as long
  int64_t capacity = 1 << 20;
  double by_area = 1;    // the share of pieces to be cut that are drawn by area; others: all alike
  double in_time = 0.5;  // the share of cuts that divide lives, not sizes
  double slack = 0;      // the capacity of the problem is larger by this share
};

// A rectangle, cut in two again and again: what is of the capacity's height, and fits without a
// gap. Buffers come in random order.
MemoryProblem guillotine(const GuillotineOptions& options, Rng& rng);

}  // namespace hone
