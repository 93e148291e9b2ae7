#include <algorithm>
#include <cmath>

#include "cost/kernel_price.h"

namespace hone {
namespace {

// Of the transforms of a line of numbers: with 4 products and with 6.
double data_slots(int64_t products) { return products == 4 ? 4 : 14; }
double result_slots(int64_t products) { return products == 4 ? 4 : 14; }

double real(int64_t n) { return static_cast<double>(n); }

}  // namespace

// What winograd does is counted loop by loop: the transforms of data and sums by channel or feature
// of a tile, the products by register tile. Operands of what comes after the conv are priced as
// arithmetic.
KernelTerms KernelPrice::price_winograd(const Schedule& schedule, double /*limit*/,
                                        Features* features) const {
  const auto& [dims, space] = *winograd_;
  const WinogradShape shape(dims, space, schedule);
  double blocks = 1, divided = 1;
  for (size_t i = 0; i + 1 < schedule.order.size(); ++i) {
    const int dim = schedule.order[i];
    const auto along =
        static_cast<size_t>(std::ranges::find(dims.spatial, dim) - dims.spatial.begin());
    const double extent = std::max(loops_[static_cast<size_t>(dim)].extent, 1.0);
    const double trips = along < dims.spatial.size()
                             ? real(shape.blocks(along, static_cast<int64_t>(extent)))
                             : extent;
    blocks *= trips;
    if (i < static_cast<size_t>(schedule.threads)) divided *= trips;
  }
  if (static_cast<size_t>(schedule.threads) == schedule.order.size()) divided *= real(shape.parts);
  const bool is_divided = threads_ > 1 && schedule.threads > 0;
  const double threads = is_divided ? divided / std::ceil(divided / threads_) : 1;
  const WinogradWork work = winograd_work(shape);
  const double passes = blocks * real(shape.parts);
  // With a group's few channels all passes are short, so they hide nothing of each other.
  KernelTerms terms = {.not_hidden = winograd_->first.groups > 1 ? 1 : prices_.not_hidden};
  terms.arithmetic = passes * work.arithmetic * slot_ / threads;
  terms.access = passes * work.access * slot_ / threads;
  terms.overhead = passes * work.trips * prices_.trip * slot_ / threads;
  terms.memory = winograd_memory(shape, blocks, threads);
  if (is_divided) terms.fork_join = target_.fork_join;
  if (features != nullptr) describe_winograd(schedule, shape, blocks, terms, *features);
  return terms;
}

// Of a part of the features in a block, in slots. Without groups the stores of sums are left out:
// there the products outweigh them, and the shipped models learned from such prices.
KernelPrice::WinogradWork KernelPrice::winograd_work(const WinogradShape& shape) const {
  const WinogradDims& dims = winograd_->first;
  const bool is_plane = dims.spatial.size() == 2;
  const int64_t side = shape.points + kWinogradWindow - 1;
  const double lanes = real(shape.lanes), in_vector = std::ceil(lanes / vector_);
  const double vectors = real(shape.vectors) * in_vector;
  const double products = real(shape.products), tiles = real(shape.tiles);
  const double points = is_plane ? real(shape.points * shape.points) : real(shape.points);
  double epilogue = 0, apart_in = 1, apart_out = 1;
  for (const Work& each : work_)
    if (!each.is_sum) epilogue += each.slots;
  for (const Access& access : accesses_) {
    const int along = access.is_store ? dims.features : dims.channels;
    const bool is_apart = lanes > 1 && (access.contiguous >> along & 1) == 0;
    if (access.side == 0 && is_apart) apart_in = prices_.apart * lanes;
    if (access.is_store && is_apart) apart_out = prices_.apart * lanes;
  }
  // Numbers of a tile that has no register are stored and loaded again.
  const double kept = std::max(products - registers_, 0.0) * prices_.spill;
  WinogradWork work;
  // Data, of a vector of channels of all tiles.
  const double channels = tiles * std::ceil(real(shape.channels) / lanes) * in_vector;
  work.arithmetic += channels * (is_plane ? 2 * real(side) : 1) * data_slots(side);
  work.access +=
      channels * (products * (apart_in * prices_.load + prices_.branch + prices_.store) + kept);
  work.trips += channels;
  WinogradWork short_sums;
  add_winograd_products(shape, vectors, dims.groups > 1 ? short_sums : work);
  // Results, of a vector of features of all tiles.
  const double features = tiles * real(shape.panels()) * vectors;
  work.arithmetic += features * ((is_plane ? real(side + shape.points) : 1) * result_slots(side) +
                                 points * epilogue);
  work.access += features * (products * prices_.load + kept + points * apart_out * prices_.store);
  work.trips += features;
  if (dims.groups > 1) {
    short_sums.access += features * products * prices_.store;
    // The larger of both, which is no part of what transforms take.
    work.arithmetic += std::max(short_sums.arithmetic - short_sums.access, 0.0);
    work.access += short_sums.access;
    work.trips += short_sums.trips;
  }
  return work;
}

// The last register tile may have fewer rows. `vectors`: of the machine, in a panel.
void KernelPrice::add_winograd_products(const WinogradShape& shape, double vectors,
                                        WinogradWork& to) const {
  const double sums = real(shape.products) * real(shape.panels()) * real(shape.channels);
  const auto register_tiles = [&](int64_t count, int64_t rows) {
    if (count == 0 || rows == 0) return;
    const double sum = real(rows) * vectors, trips = sums * real(count);
    const double no_register = std::max(sum + vectors + 1 - registers_, 0.0);
    to.arithmetic += trips * std::max(sum, prices_.sum_latency);
    to.access += trips * ((real(rows) + vectors) * prices_.load + no_register * prices_.spill);
    to.trips += trips;
  };
  register_tiles(shape.tiles / shape.rows, shape.rows);
  register_tiles(1, shape.tiles % shape.rows);
}

// As memory() counts: for each cache, what comes from behind it. Weights come once for each block
// if they do not fit beside its tiles; a part's transformed tiles once for each of its panels if a
// panel does not. Weights of groups serve few products, so it counts that they come from memory,
// since a model's other weights displace them between its runs: as much of it as transformed ones
// have more, for prices of other algorithms leave it out.
double KernelPrice::winograd_memory(const WinogradShape& shape, double blocks,
                                    double threads) const {
  const WinogradDims& dims = winograd_->first;
  double arrays = 0, element = 4;
  for (const Access& access : accesses_) {
    if (access.side == 1) element = std::max(access.element, 4.0);
    if (access.side != 1) arrays += access.bytes;
    // Parts of a group transform the same data.
    if (access.side == 0) arrays += access.bytes * real(shape.parts / dims.groups - 1);
  }
  const double row = real(shape.products) * element;
  const double panel = row * real(shape.channels * shape.panel());
  const double panels = real(shape.parts * shape.panels());
  const double weights = panel * panels;
  const double data = row * real(shape.tiles * shape.channels);
  const double sums = row * real(shape.tiles * shape.panel());
  double slowest = 0, displaced = 0;
  for (size_t c = 0; c < target_.caches.size(); ++c) {
    const CacheLevel& cache = target_.caches[c];
    const bool is_last = c + 1 == target_.caches.size();
    const double capacity = real(cache.bytes) / std::min(threads, real(cache.cores)) / 2;
    if (is_last && weights + arrays <= capacity) {
      const double plain = std::pow(kWinogradWindow, real(std::ssize(shape.block)));
      if (dims.groups > 1)
        displaced = seconds_from_behind(c, weights * (1 - plain / real(shape.products)), threads);
      continue;
    }
    double bytes = arrays + weights * (weights + data + sums <= capacity ? 1 : blocks);
    if (panel + data + sums > capacity) bytes += blocks * panels * data;
    if (sums > capacity) bytes += 2 * blocks * panels * sums;
    slowest = std::max(slowest, seconds_from_behind(c, bytes, threads));
  }
  return slowest + displaced;
}

}  // namespace hone
