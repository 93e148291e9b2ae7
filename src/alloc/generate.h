#pragma once

#include "alloc/problem.h"
#include "base/rng.h"

// Problems to train, test and measure on.

namespace hone {

constexpr int64_t kMaxGuillotineSteps = int64_t{1} << 30;
constexpr int64_t kMaxGuillotineCapacity = int64_t{1} << 50;

struct GuillotineOptions {
  int64_t buffers = 200;  // at most a quarter of the square of the steps
  int64_t steps = 1024;   // sizes and lives are multiples of the capacity divided by this
  int64_t capacity = 1 << 20;
  double by_area = 1;    // the share of cuts whose piece is drawn by area; others: all alike
  double in_time = 0.5;  // the share of cuts that divide a life; others divide a size
};

// Cuts a rectangle in two again and again. Its pieces are the buffers, in random order: they fill
// the capacity without a gap.
MemoryProblem guillotine(const GuillotineOptions& options, Rng& rng);

}  // namespace hone
