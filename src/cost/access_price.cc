#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cost/kernel_nest.h"

// Prices the instructions of loads and stores.

namespace hone {
namespace {

// Slots of taking numbers that share bytes out of them: of a vector, and of each lane on its own.
constexpr double kUnpack = 1.5, kUnpackLane = 4;
// Bytes of packed weights that lie apart take longer than numbers: no instruction gathers bytes.
constexpr double kBytesApart = 2;

}  // namespace

// The price of a vector's lanes that lie apart: one by one, or a few vectors and a choice among
// each.
double KernelPrice::slots_apart(const Nest& nest, const Access& access, size_t l) const {
  const bool is_masked = nest.packing(access) == Packing::no && access.side <= 0 &&
                         nest.lanes >= 0 && (nest.guards(access) >> nest.lanes & 1) != 0;
  if (access.element < 1) return nest.tile[l] / nest.instructions[l] * kUnpackLane;
  // If there are more lanes than lie side by side, the others are far away.
  const bool is_far = access.along[l].stride == 1 && nest.lane_count > access.run;
  if (!access.is_store && !is_masked && !is_far && (access.near >> l & 1) != 0)
    return 2 * std::ceil(access.along[l].span / vector_);
  if (const double slots = slots_transposed(nest, access, l); slots > 0) return slots;
  const double lanes = nest.tile[l] / nest.instructions[l];
  const double apart = access.element == 1 && is_made(access.side) ? kBytesApart : 1;
  return lanes * (apart * prices_.apart + displaced(access, l, nest.tile[l]));
}

// Slots of taking an element whose line others have displaced from the nearest cache. This happens
// where more points of the loop are taken in turn, pages apart, than the cache has places for.
double KernelPrice::displaced(const Access& access, size_t l, double points) const {
  const double places = static_cast<double>(target_.caches.front().bytes) / kPage;
  return points > places * access.along[l].places ? prices_.displaced : 0;
}

// True if lines that a tile reads side by side lie whole pages apart, and are more than the nearest
// cache has places for. Lines that it fetches ahead then displace each other.
bool KernelPrice::is_crowded(const Nest& nest, const Access& access) const {
  const double ways = static_cast<double>(target_.caches.front().bytes) / kPage;
  for (Loops left = access.loops; left != 0; left &= left - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(left));
    const bool has_runs = access.along[l].stride == 1 && nest.tile[l] > access.run;
    const double lines = has_runs ? std::ceil(nest.tile[l] / access.run) : nest.tile[l];
    if (lines > ways * (has_runs ? access.jump_places : access.along[l].places)) return true;
  }
  return false;
}

// Slots of an access, for each point that it may be done for. A mask lets none out.
double KernelPrice::slots_of(const Nest& nest, const Access& access) const {
  double slots = access.is_store ? prices_.store : prices_.load;
  bool is_apart = false;
  const Packing packing = nest.packing(access);
  if (packing == Packing::panels) return slots;
  if (access.element < 1) slots += kUnpack;
  // Where lanes do not share a guard, it is a mask.
  const bool has_lanes = nest.lanes >= 0 && (nest.guards(access) >> nest.lanes & 1) != 0;
  if (packing == Packing::no && access.side <= 0 && has_lanes) slots += prices_.mask;
  for (Loops left = access.loops; left != 0; left &= left - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(left));
    const bool is_wide = nest.tile[l] > 1 && nest.instructions[l] < nest.tile[l];
    const bool has_words = nest.word && access.side >= 0;
    const bool is_vector = has_words ? packing == Packing::no && access.along[l].stride == in_word_
                                     : access.along[l].stride == 1 && nest.lane_count <= access.run;
    // The price of an element that all lanes share.
    const bool is_broadcast = access.along[l].repeat >= std::min(nest.lane_count, vector_);
    if (!is_wide || is_vector || is_broadcast) continue;
    slots *= has_words ? nest.lane_count * prices_.apart : slots_apart(nest, access, l);
    is_apart = true;
  }
  if (!is_apart && is_crowded(nest, access)) slots += prices_.crowded;
  return has_lanes ? slots : slots * access.share;
}

// Slots of the branches around an access, for each point; points with one condition share a branch.
double KernelPrice::branches(const Nest& nest, const Access& access) const {
  if (nest.packing(access) != Packing::no || access.side > 0) return 0;
  const Loops guards = nest.guards(access);
  const Loops masks = nest.lanes < 0 ? 0 : guards & (1U << nest.lanes);
  const Loops results = (1U << parallel_) - 1;
  if ((guards & ~masks & (masks != 0 ? results : ~0U)) == 0) return 0;
  if (are_trips_inside(nest, guards)) return 0;
  return prices_.branch / side_by_side(nest, access.loops & ~guards);
}

// Windows whose place is one trip's skip the trips that meet padding.
bool KernelPrice::are_trips_inside(const Nest& nest, Loops guards) const {
  if ((guards >> parallel_) == 0) return false;
  for (; guards != 0; guards &= guards - 1)
    if (nest.tile[static_cast<size_t>(std::countr_zero(guards))] > 1) return false;
  return true;
}

// How many points of a tile share an element that is read for them: where tiles begin with others.
double KernelPrice::repeats(const Nest& nest, const Access& access) const {
  double repeats = 1;
  for (Loops left = access.loops; left != 0; left &= left - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(left));
    if (static_cast<int>(l) == nest.lanes) continue;
    const double tile = nest.tile[l], shared = access.along[l].repeat;
    if (tile == 1 || shared == 1) continue;
    if (divides(std::min(tile, shared), std::max(tile, shared))) repeats *= std::min(tile, shared);
  }
  return repeats;
}

// How far the next tile of the innermost loop lies from this one, in bytes.
double KernelPrice::moves_on(const Nest& nest, const Access& access) const {
  for (size_t i = nest.count; i-- > 0;) {
    const auto l = static_cast<size_t>(nest.steps[i].loop);
    const bool is_in = (access.loops >> l & 1) != 0;
    if (nest.steps[i].trips <= 1 || (!loops_[l].is_result && !is_in)) continue;
    return is_in ? std::abs(access.along[l].stride) * access.element * nest.tile[l] /
                       access.along[l].repeat
                 : 0;
  }
  return 0;
}

// In how many places neighbours begin that a tile touches, and whether the next tile goes on where
// they end.
KernelPrice::Runs KernelPrice::runs_of(const Nest& nest, const Access& access) const {
  if (nest.packing(access) == Packing::panels) return {.count = 1, .go_on = true};
  double starts = 1, span = std::max(access.element, kLine);
  Loops left = access.loops;
  while (left != 0) {
    size_t next = 0;
    double least = std::numeric_limits<double>::infinity();
    for (Loops rest = left; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<size_t>(std::countr_zero(rest));
      // Points in registers that share elements lie near each other.
      const double step = access.along[l].repeat > 1 ? 0 : std::abs(access.along[l].stride);
      const double stride = step * access.element;
      if (stride < least || rest == left) next = l, least = stride;
    }
    left &= ~(1U << next);
    double count = loops_[next].is_result ? nest.tile[next] : nest.block[next];
    // Blocks of the dim lie apart.
    if (access.along[next].stride == 1 && count > access.run && access.jump > access.run) {
      starts *= std::ceil(count / access.run);
      count = access.run;
    }
    if (least <= span)
      span = std::max(span, least * count);
    else
      starts *= count;
  }
  return {starts, moves_on(nest, access) <= span};
}

}  // namespace hone
