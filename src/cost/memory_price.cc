#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cost/kernel_nest.h"

// Prices bytes from caches and memory.

namespace hone {
namespace {

constexpr double kKept = 0.5;                // of a cache, for what is to stay there
constexpr double kKeptBesideStreams = 0.75;  // where all else is read once

}  // namespace

// The bytes of an array that a block touches: windows that overlap count once.
double KernelPrice::part_in_window(const Access& access) const {
  double elements = 1;
  if (access.steps.empty())
    for (Loops left = access.loops; left != 0; left &= left - 1)
      elements *= loops_[static_cast<size_t>(std::countr_zero(left))].extent;
  for (const std::vector<std::pair<int, double>>& along : access.steps) {
    double points = 1;
    for (const auto& [loop, step] : along)
      points += std::abs(step) * (loops_[static_cast<size_t>(loop)].extent - 1);
    elements *= points;
  }
  return std::min(access.bytes, elements * access.element);
}

// The part of the array that `inside` points of each loop touch.
KernelPrice::Footprint KernelPrice::footprint(const Access& access,
                                              const std::array<double, kMaxLoops>& inside,
                                              Packing packing) const {
  double elements = 1, each = kLine, apart = 1;  // bytes that are fetched for an element
  for (Loops left = access.loops; left != 0; left &= left - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(left));
    // Dividing takes longer than all else here, and nearly all repeat nothing.
    if (access.along[l].repeat != 1) {
      elements *= std::max(inside[l] / access.along[l].repeat, 1.0);
      if (access.along[l].repeat > 1) continue;
    } else {
      elements *= std::max(inside[l], 1.0);
    }
    if ((access.near >> l & 1) != 0) {
      const double count = std::min(inside[l], access.run);
      const double bytes = count * access.element * access.along[l].span / vector_;
      each = std::min(each, std::max(bytes, kLine) / count);
    }
    if (access.along[l].places == 1) apart *= inside[l];
  }
  if (packing == Packing::panels) {
    each = std::max(access.element, kLine / elements);
    apart = 1;
  }
  return {std::min(elements * each, std::max(access.bytes, kLine)), apart};
}

// A step of another reduction, or of a loop of results inside of which only the result of the
// access's reduction is known.
bool KernelPrice::is_beside(const Nest& nest, size_t step, const Access& access,
                            size_t depth) const {
  const auto loop = nest.steps[step].loop;
  if (!loops_[loop].is_result) return (access.elsewhere >> loop & 1) != 0;
  return step >= depth && (access.loops >> parallel_) != 0;
}

double KernelPrice::memory(const Nest& nest, double threads, Counted& counted) const {
  constexpr size_t kLevels = 3 * kMaxLoops + 1;
  // The bytes that the steps from a level on touch, by access and level.
  std::array<std::array<Footprint, kLevels>, kMaxAccesses> touched;
  std::array<size_t, kMaxAccesses> depths;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    const Access& access = accesses_[a];
    depths[a] = depth(nest, access.loops);
    const Packing packing = nest.packing(access);
    std::array<double, kMaxLoops> inside = nest.tile;
    touched[a][nest.count] = footprint(access, inside, packing);
    if (!access.is_field) counted.tile_bytes += touched[a][nest.count].bytes;
    for (size_t i = nest.count; i-- > 0;) {
      const Nest::Step& step = nest.steps[i];
      inside[step.loop] *= step.trips;
      const bool is_more = step.trips != 1 && (access.loops >> step.loop & 1) != 0;
      touched[a][i] = is_more ? footprint(access, inside, packing) : touched[a][i + 1];
    }
  }
  // Packed weights go through a cache in few bytes, beside what stays there.
  const bool streams = is_packed(1) && nest.packings[1] == Packing::no;
  double slowest = 0;
  for (size_t c = 0; c < target_.caches.size(); ++c) {
    const CacheLevel& cache = target_.caches[c];
    const bool is_last = c + 1 == target_.caches.size();
    const double bytes_of_cache = static_cast<double>(cache.bytes);
    const double sharers = std::min(threads, static_cast<double>(cache.cores));
    const double capacity = bytes_of_cache * (streams ? kKeptBesideStreams : kKept);
    // Bytes that have no room beside each other. Words that fill pages have a place for each line.
    const auto taken = [&](size_t a, size_t level) {
      if (accesses_[a].is_field) return 0.0;
      const Footprint& part = touched[a][level];
      const bool fills = nest.word && part.bytes >= part.apart * kPage;
      const bool meet = part.apart > bytes_of_cache / kPage && !fills;
      return part.bytes * (meet ? prices_.page_conflict : 1);
    };
    // Trips of divided loops that threads are at, at the same time.
    double at_once = 1;
    size_t level = 0;
    for (; level < nest.count; ++level) {
      double all = 0;
      for (size_t a = 0; a < accesses_.size(); ++a) all += taken(a, level);
      if (all * at_once <= capacity) break;
      if (level < nest.divided) at_once = std::min(at_once * nest.steps[level].trips, sharers);
    }
    counted.levels[std::min(c, counted.levels.size() - 1)].outside = level;
    // Data that fit the last cache were left there.
    if (is_last && level == 0) continue;
    double bytes = 0;
    for (size_t a = 0; a < accesses_.size(); ++a) {
      // Data that stages pass on in a cache do not come from behind it.
      if (accesses_[a].is_held && accesses_[a].bytes <= capacity / sharers) continue;
      double fetched = taken(a, level);
      bool is_kept = true;  // so far, what the inner steps touch is touched again
      for (size_t i = level; i-- > 0;) {
        if (is_beside(nest, i, accesses_[a], depths[a])) continue;
        is_kept = is_kept && (accesses_[a].loops >> nest.steps[i].loop & 1) == 0;
        if (!is_kept) fetched *= nest.steps[i].trips;
        // One trip after the other finds the rest of the lines that those before have fetched.
        if (!is_kept && i + 1 == level) fetched = std::min(fetched, taken(a, i));
      }
      bytes += fetched;
    }
    counted.levels[std::min(c, counted.levels.size() - 1)].bytes = bytes;
    slowest = std::max(slowest, seconds_from_behind(c, bytes, threads));
  }
  return slowest * (1 + prices_.burst * bursts(counted));
}

// Where a tile touches many lines of each array, reading and writing take turns: 1 for large tiles
// of a kernel that writes as much as it reads.
double KernelPrice::bursts(const Counted& counted) const {
  double written = 0;
  for (const Access& access : accesses_) written += access.is_store ? access.bytes : 0;
  if (written == 0) return 0;
  const double lines = counted.tile_bytes / kLine / static_cast<double>(accesses_.size());
  return (1 - 1 / std::max(lines, 1.0)) * std::min(2 * written / bytes_, 1.0);
}

double KernelPrice::memory_seconds() const {
  const size_t last = target_.caches.size() - 1;
  if (2 * bytes_ <= static_cast<double>(target_.caches[last].bytes)) return 0;
  return seconds_from_behind(last, bytes_, threads_);
}

// The time of bytes that come from behind a cache, all threads together.
double KernelPrice::seconds_from_behind(size_t cache, double bytes, double threads) const {
  const bool is_last = cache + 1 == target_.caches.size();
  const double rate = is_last
                          ? std::min(target_.memory_one_core, target_.memory_all_cores / threads)
                          : target_.caches[cache + 1].bytes_per_second;
  const double factor = is_last      ? prices_.memory
                        : cache == 0 ? prices_.second_cache
                                     : prices_.third_cache;
  return factor * bytes / threads / rate;
}

}  // namespace hone
