#include <algorithm>
#include <cmath>

#include "cost/kernel_price.h"

namespace hone {
namespace {

// Slots, for one channel of one feature or tile: loads, sums, and stores at two slots each.
constexpr double kWeightSlots = 9 + 28 + 16 * 2;
constexpr double kDataSlots = 16 + 32 + 16 * 2;
constexpr double kProductSlots = 16 * 3;     // a product and its two loads
constexpr double kResultSlots = 24 + 4 * 2;  // of a feature of a tile

}  // namespace

// A tile has 2 x 2 points. The features are the innermost loop, the channels the first reduction.
// Accesses of what comes after the conv are priced as arithmetic.
KernelTerms KernelPrice::price_winograd(const Schedule& schedule, double /*limit*/) const {
  const auto extent = [&](int loop) {
    return std::max(loops_[static_cast<size_t>(loop)].extent, 1.0);
  };
  double points = 1, divided = 1, epilogue = 0, bytes = 0;
  for (int dim = 0; dim < parallel_; ++dim) points *= extent(dim);
  for (int i = 0; i < schedule.threads; ++i)
    divided *= extent(schedule.order[static_cast<size_t>(i)]);
  for (const Work& work : work_)
    if (!work.is_sum) epilogue += work.slots;
  for (const Access& access : accesses_) bytes += access.bytes;
  const double features = extent(schedule.order.back()), channels = extent(parallel_);
  const double tiles = points / features / 4;
  const double lanes = schedule.lanes.empty() ? 1 : static_cast<double>(schedule.lanes[0].count);
  // The last vector of features may be filled in part.
  const double vectors = std::ceil(features / lanes) * std::ceil(lanes / vector_);

  const bool is_divided = threads_ > 1 && schedule.threads > 0;
  const double threads = is_divided ? divided / std::ceil(divided / threads_) : 1;
  KernelTerms terms = {.not_hidden = prices_.not_hidden};
  terms.arithmetic = (features * channels * kWeightSlots + tiles * channels * kDataSlots +
                      tiles * vectors * (channels * kProductSlots + kResultSlots + 4 * epilogue)) *
                     slot_ / threads;
  terms.memory = prices_.memory * bytes /
                 std::min(target_.memory_one_core * threads, target_.memory_all_cores);
  if (is_divided) terms.fork_join = 2 * target_.fork_join;  // weights, then tiles
  return terms;
}

}  // namespace hone
