#include <algorithm>
#include <cmath>

#include "cost/kernel_nest.h"
#include "kernel/algorithms/winograd.h"

namespace hone {
namespace {

// The steps of the transforms of a line of numbers: with 4 products and with 6.
double data_slots(int64_t products) { return products == 4 ? 4 : 14; }
double result_slots(int64_t products) { return products == 4 ? 4 : 14; }

double real(int64_t n) { return static_cast<double>(n); }

}  // namespace

template <>
class KernelPrice::Own<Algorithm::winograd> {
 public:
  Own(const KernelPrice& price, const Schedule& schedule)
      : price_(price),
        roles_(*static_cast<const WinogradRoles*>(
            price.roles_[static_cast<size_t>(Algorithm::winograd)].get())),
        dims_(roles_.dims),
        schedule_(schedule),
        shape_(roles_.dims, roles_.space, schedule) {}

  KernelTerms terms(Features* features) const;

 private:
  // Slots and trips of loops.
  struct Counts {
    double arithmetic = 0, access = 0, trips = 0;
  };
  Counts counts() const;
  void add_products(double vectors, Counts& to) const;
  double memory(double blocks, double threads) const;
  void describe(double blocks, const KernelTerms& terms, Features& to) const;

  const KernelPrice& price_;
  const WinogradRoles& roles_;
  const WinogradDims& dims_;
  const Schedule& schedule_;
  const WinogradShape shape_;
};

KernelTerms KernelPrice::price_winograd(const Schedule& schedule, double /*limit*/,
                                        Features* features) const {
  return Own<Algorithm::winograd>(*this, schedule).terms(features);
}

// The work of winograd is counted loop by loop: the transforms of data and sums by channel or
// feature of a tile, the products by register tile. Operands of what comes after the conv are
// priced as arithmetic.
KernelTerms KernelPrice::Own<Algorithm::winograd>::terms(Features* features) const {
  double blocks = 1, divided = 1;
  for (size_t i = 0; i + 1 < schedule_.order.size(); ++i) {
    const int dim = schedule_.order[i];
    const auto along =
        static_cast<size_t>(std::ranges::find(dims_.spatial, dim) - dims_.spatial.begin());
    const double extent = std::max(price_.loops_[static_cast<size_t>(dim)].extent, 1.0);
    const double trips = along < dims_.spatial.size()
                             ? real(shape_.blocks(along, static_cast<int64_t>(extent)))
                             : extent;
    blocks *= trips;
    if (i < static_cast<size_t>(schedule_.threads)) divided *= trips;
  }
  if (static_cast<size_t>(schedule_.threads) == schedule_.order.size())
    divided *= real(shape_.parts);
  const bool is_divided = price_.threads_ > 1 && schedule_.threads > 0;
  const double threads = is_divided ? divided / std::ceil(divided / price_.threads_) : 1;
  const Counts work = counts();
  const double passes = blocks * real(shape_.parts);
  // With a group's few channels all passes are short, so they hide nothing of each other.
  KernelTerms terms = {.not_hidden = dims_.groups > 1 ? 1 : price_.prices_.not_hidden};
  terms.arithmetic = passes * work.arithmetic * price_.slot_ / threads;
  terms.access = passes * work.access * price_.slot_ / threads;
  terms.overhead = passes * work.trips * price_.prices_.trip * price_.slot_ / threads;
  terms.memory = memory(blocks, threads);
  if (is_divided) terms.fork_join = price_.target_.fork_join;
  if (features != nullptr) describe(blocks, terms, *features);
  return terms;
}

// Counts a part of the features in a block, in slots. Without groups the stores of sums are left
// out: there the products outweigh them, and the shipped models learned from such prices.
KernelPrice::Own<Algorithm::winograd>::Counts KernelPrice::Own<Algorithm::winograd>::counts()
    const {
  const bool is_plane = dims_.spatial.size() == 2;
  const int64_t side = shape_.points + kWinogradWindow - 1;
  const double lanes = real(shape_.lanes), in_vector = std::ceil(lanes / price_.vector_);
  const double vectors = real(shape_.vectors) * in_vector;
  const double products = real(shape_.products), tiles = real(shape_.tiles);
  const double points = is_plane ? real(shape_.points * shape_.points) : real(shape_.points);
  double epilogue = 0, apart_in = 1, apart_out = 1;
  for (const KernelPrice::Work& each : price_.work_)
    if (!each.is_sum) epilogue += each.slots;
  for (const KernelPrice::Access& access : price_.accesses_) {
    const int along = access.is_store ? dims_.features : dims_.channels;
    const bool is_apart = lanes > 1 && (access.contiguous >> along & 1) == 0;
    if (access.side == 0 && is_apart) apart_in = price_.prices_.apart * lanes;
    if (access.is_store && is_apart) apart_out = price_.prices_.apart * lanes;
  }
  // Numbers of a tile that has no register are stored and loaded again.
  const double kept = std::max(products - price_.registers_, 0.0) * price_.prices_.spill;
  Counts work;
  // Data, of a vector of channels of all tiles.
  const double channels = tiles * std::ceil(real(shape_.channels) / lanes) * in_vector;
  work.arithmetic += channels * (is_plane ? 2 * real(side) : 1) * data_slots(side);
  work.access +=
      channels *
      (products * (apart_in * price_.prices_.load + price_.prices_.branch + price_.prices_.store) +
       kept);
  work.trips += channels;
  Counts short_sums;
  add_products(vectors, dims_.groups > 1 ? short_sums : work);
  // Results, of a vector of features of all tiles.
  const double features = tiles * real(shape_.panels()) * vectors;
  work.arithmetic += features * ((is_plane ? real(side + shape_.points) : 1) * result_slots(side) +
                                 points * epilogue);
  work.access += features * (products * price_.prices_.load + kept +
                             points * apart_out * price_.prices_.store);
  work.trips += features;
  if (dims_.groups > 1) {
    short_sums.access += features * products * price_.prices_.store;
    // The larger of both, which is not a part of the transforms' work.
    work.arithmetic += std::max(short_sums.arithmetic - short_sums.access, 0.0);
    work.access += short_sums.access;
    work.trips += short_sums.trips;
  }
  return work;
}

// The last register tile may have fewer rows. `vectors`: of the machine, in a panel.
void KernelPrice::Own<Algorithm::winograd>::add_products(double vectors, Counts& to) const {
  const double sums = real(shape_.products) * real(shape_.panels()) * real(shape_.channels);
  const auto register_tiles = [&](int64_t count, int64_t rows) {
    if (count == 0 || rows == 0) return;
    const double sum = real(rows) * vectors, trips = sums * real(count);
    const double no_register = std::max(sum + vectors + 1 - price_.registers_, 0.0);
    to.arithmetic += trips * std::max(sum, price_.prices_.sum_latency);
    to.access +=
        trips * ((real(rows) + vectors) * price_.prices_.load + no_register * price_.prices_.spill);
    to.trips += trips;
  };
  register_tiles(shape_.tiles / shape_.rows, shape_.rows);
  register_tiles(1, shape_.tiles % shape_.rows);
}

// As memory() counts: for each cache, what comes from behind it. Weights come once for each block
// if they do not fit beside its tiles; a part's transformed tiles once for each of its panels if a
// panel does not. Weights of groups serve few products, so it counts that they come from memory: a
// model's other weights displace them between its runs. Only the bytes that transformed weights
// have more than plain ones count, for prices of other algorithms leave this out.
double KernelPrice::Own<Algorithm::winograd>::memory(double blocks, double threads) const {
  double arrays = 0, element = 4;
  for (const KernelPrice::Access& access : price_.accesses_) {
    if (access.side == 1) element = std::max(access.element, 4.0);
    if (access.side != 1) arrays += access.bytes;
    // Parts of a group transform the same data.
    if (access.side == 0) arrays += access.bytes * real(shape_.parts / dims_.groups - 1);
  }
  const double row = real(shape_.products) * element;
  const double panel = row * real(shape_.channels * shape_.panel());
  const double panels = real(shape_.parts * shape_.panels());
  const double weights = panel * panels;
  const double data = row * real(shape_.tiles * shape_.channels);
  const double sums = row * real(shape_.tiles * shape_.panel());
  double slowest = 0, displaced = 0;
  for (size_t c = 0; c < price_.target_.caches.size(); ++c) {
    const CacheLevel& cache = price_.target_.caches[c];
    const bool is_last = c + 1 == price_.target_.caches.size();
    const double capacity = real(cache.bytes) / std::min(threads, real(cache.cores)) / 2;
    if (is_last && weights + arrays <= capacity) {
      const double plain = std::pow(kWinogradWindow, real(std::ssize(shape_.block)));
      if (dims_.groups > 1)
        displaced =
            price_.seconds_from_behind(c, weights * (1 - plain / real(shape_.products)), threads);
      continue;
    }
    double bytes = arrays + weights * (weights + data + sums <= capacity ? 1 : blocks);
    if (panel + data + sums > capacity) bytes += blocks * panels * data;
    if (sums > capacity) bytes += 2 * blocks * panels * sums;
    slowest = std::max(slowest, price_.seconds_from_behind(c, bytes, threads));
  }
  return slowest + displaced;
}

void KernelPrice::Own<Algorithm::winograd>::describe(double blocks, const KernelTerms& terms,
                                                     Features& to) const {
  const double total = terms.total();
  to.is_winograd = 1;
  to.four_points = as_switch(shape_.points == 4);
  to.blocks = log_feature(blocks);
  to.tiles = log_feature(static_cast<double>(shape_.tiles));
  to.seconds = log_feature(total * 1e9);
  to.by_arithmetic = share(terms.arithmetic, total);
  to.by_access = share(terms.access, total);
  to.by_memory = share(terms.memory, total);
  to.by_overhead = share(terms.overhead, total);
  to.lanes = log_feature(static_cast<double>(shape_.lanes - 1));
  to.vectors = static_cast<float>(std::ceil(static_cast<double>(shape_.lanes) / price_.vector_));
  to.lhs_tile = log_feature(static_cast<double>(shape_.rows));
  to.rhs_tile = log_feature(static_cast<double>(shape_.panel()));
  const double sums = static_cast<double>(shape_.rows * shape_.vectors) * to.vectors;
  to.sums = log_feature(sums);
  to.registers = static_cast<float>(std::min(sums / price_.registers_, 4.0));
  to.divided_loops = static_cast<float>(schedule_.threads);
}

}  // namespace hone
