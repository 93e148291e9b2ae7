#include <algorithm>
#include <bit>
#include <cmath>

#include "cost/kernel_nest.h"

// Prices the moves of numbers from where they lie to where lanes want them: into panels and
// windows, and by transposing them in registers.

namespace hone {
namespace {

constexpr double kLeastRun = 4;  // neighbours that are worth a vector
// A window is made row by row, and what rows of a block share, such as its scale, is made again for
// each. Its scalar instructions take this part of the time of vectors.
constexpr double kAgain = 0.25;

}  // namespace

// Slots of copying what a block needs from an operand.
double KernelPrice::copied_by_block(const Schedule& schedule, const Nest& nest, int side) const {
  double slots = 0;
  for (const Access& access : accesses_) {
    if (access.side != side) continue;
    double elements = 1;
    if (nest.packings[static_cast<size_t>(side)] == Packing::window) {
      double row = 1;  // neighbours in memory
      for (const std::vector<std::pair<int, double>>& dim : access.steps) {
        double extent = 1, of_groups = 1;
        bool is_row = false, has_words = !nest.word;
        for (const auto& [loop, step] : dim) {
          const double block = nest.block[static_cast<size_t>(loop)];
          if (std::isnan(access.along[static_cast<size_t>(loop)].stride))
            of_groups = step * block;  // whole ones, or a part of one
          else
            extent += step * (block - 1);
          is_row = is_row || (access.contiguous >> loop & 1) != 0;
          has_words = has_words || loop == word_loop_;
        }
        extent = std::max(extent, of_groups);
        is_row = is_row && has_words;  // other bytes are copied one by one
        elements *= extent;
        if (is_row) row = extent;
      }
      const double vectors = std::ceil(row / (schedule.lanes.empty() ? 1 : vector_));
      slots +=
          elements / row * (vectors * (prices_.panel_copy + prices_.mask) + prices_.window_row);
    } else {
      for (size_t l = 0; l < loops_.size(); ++l)
        if ((access.loops >> l & 1) != 0) elements *= nest.block[l];
      slots += elements * panel_slots(nest, access);
    }
    slots += slots_behind_cache(elements * access.element);
  }
  return slots;
}

// Slots of computing what a block needs from an operand that the kernel makes.
double KernelPrice::made_by_block(const Schedule& schedule, const Nest& nest, int side) const {
  Loops all = 0, rows = 0, apart = 0;
  for (const Access& access : accesses_) {
    if (access.side != side) continue;
    all |= access.loops;
    rows |= access.contiguous & access.loops;
    apart |= access.loops & ~access.contiguous;
  }
  for (const Work& work : work_)
    if (work.side == side) all |= work.loops;
  // A window has rows of neighbours in lanes, a panel the lanes of the gemm.
  const bool is_window = nest.packings[static_cast<size_t>(side)] == Packing::window;
  const Loops in_lanes = schedule.lanes.empty() ? 0
                         : is_window            ? rows & ~((1U << parallel_) - 1)
                                                : (1U << nest.lanes) & rows & ~apart;
  const auto slots_for = [&](Loops loops, double each) {
    double slots = each;
    for (Loops left = loops; left != 0; left &= left - 1)
      slots *= nest.block[static_cast<size_t>(std::countr_zero(left))];
    return (loops & in_lanes) != 0 ? slots / vector_ : slots;
  };
  double slots = slots_for(all, prices_.panel_copy), bytes = sizeof(float);
  for (Loops left = all; left != 0; left &= left - 1)
    bytes *= nest.block[static_cast<size_t>(std::countr_zero(left))];
  for (const Work& work : work_) {
    if (work.side != side) continue;
    slots += slots_for(work.loops, work.slots);
    if (is_packed(side) && is_window && (work.loops & in_lanes) == 0)
      slots += slots_for(all, kAgain * work.slots);
  }
  for (const Access& access : accesses_)
    if (access.side == side) slots += slots_for(access.loops, prices_.load);
  return slots + slots_behind_cache(bytes);
}

// Packed numbers are written and read where there is room for them beside all else.
double KernelPrice::slots_behind_cache(double bytes) const {
  double slots = 0;
  for (size_t c = 0; c + 1 < target_.caches.size(); ++c)
    if (4 * bytes > static_cast<double>(target_.caches[c].bytes))
      slots += 2 * bytes / target_.caches[c + 1].bytes_per_second / slot_;
  return slots;
}

// The price of copying a number of an operand into a panel.
double KernelPrice::panel_slots(const Nest& nest, const Access& access) const {
  if (nest.matrix) return matrix_panel_slots(nest, access);
  if (nest.lanes < 0) return prices_.panel_copy;
  const auto l = static_cast<size_t>(nest.lanes);
  if (access.along[l].stride == 1 && nest.lane_count <= access.run)
    return prices_.panel_copy / vector_;
  return prices_.panel_copy + displaced(access, l, nest.block[l]);
}

// Steps of a vector, of as many as it has lanes.
double KernelPrice::transposing() const { return prices_.transpose * std::log2(vector_); }

// How many points side by side in registers are neighbours in memory, where lanes are not.
double KernelPrice::run_of(const Nest& nest, const Access& access, size_t lanes) const {
  if (access.element != 4 || access.guards != 0) return 1;
  double run = 1;
  for (uint8_t l : std::span(access.ascending).first(access.ascending_count)) {
    if (l == lanes || nest.tile[l] == 1) continue;
    if (std::abs(access.along[l].stride) != run) break;
    run *= nest.tile[l];
  }
  return run;
}

// The price of a vector whose lanes lie apart, where points in registers are neighbours; 0: they
// are not.
double KernelPrice::slots_transposed(const Nest& nest, const Access& access, size_t l) const {
  if (static_cast<int>(l) != nest.lanes ||
      !(std::abs(access.along[l].stride) > prices_.near_vectors))
    return 0;
  const double run = run_of(nest, access, l);
  if (run < kLeastRun) return 0;
  const double access_slots = access.is_store ? prices_.store : prices_.load;
  const double lanes = nest.tile[l] / nest.instructions[l];
  const double together = std::min(run, vector_);
  return lanes * (1 + transposing() / access_slots + displaced(access, l, nest.tile[l])) / together;
}

}  // namespace hone
