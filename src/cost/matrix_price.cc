#include <algorithm>
#include <array>
#include <cmath>

#include "cost/kernel_nest.h"

// Gemms on a matrix unit: what it takes to load tiles beside their products, and to pack panels.

namespace hone {
namespace {

// How often the tiles of the left and the right operand are loaded in a step, for its products of
// parts (codegen/emit/products.cc).
std::array<double, 2> loads_in_step(int64_t parts) {
  if (parts == 3) return {4, 3};
  return {static_cast<double>(parts), static_cast<double>(parts)};
}

// Rows that the unit takes in before the sum of the first one is ready.
constexpr double kLatency = 52;
constexpr double kWholeLines = 0.7;  // of the time of bytes from a cache

// A panel leaves as much room in a cache for all else.
double seconds_of_byte(const Target& target, double panel) {
  for (size_t c = 0; c + 1 < target.caches.size(); ++c)
    if (2 * panel <= static_cast<double>(target.caches[c].bytes))
      return 1 / target.caches[c].bytes_per_second;
  return 1 / target.caches.back().bytes_per_second;
}

}  // namespace

// The price of a vector of products. The unit multiplies and tiles are loaded at the same time. The
// panel of a tile of one operand stays while tiles of the other go through it, block by block.
double KernelPrice::slots_on_matrix_unit(const Schedule& schedule, const Nest& nest) const {
  const double unit = target_.peak(matrix_->are_quads ? DType::i8 : DType::bf16);
  const auto products = static_cast<double>(matrix_->products());
  if (!(unit > 0) || nest.lanes < 0 || target_.caches.empty()) return products;
  Loops columns = 0;  // of the operand that has the lanes
  for (const Access& access : accesses_)
    if (access.side >= 0 && (access.loops >> nest.lanes & 1) != 0) columns |= access.loops;
  // Rows, then columns: points of a tile and of a block.
  std::array<double, 2> tile = {1, 1}, block = {1, 1};
  double depth = 1;
  for (size_t l = 0; l < loops_.size(); ++l) {
    const size_t side = (columns >> l & 1) != 0 ? 1 : 0;
    if (!loops_[l].is_result) {
      depth *= nest.block[l];
      continue;
    }
    tile[side] *= static_cast<double>(register_tile(schedule, static_cast<int>(l)));
    block[side] *= nest.block[l];
  }
  size_t inner = 0;  // the side whose tiles come one after another
  for (int dim : schedule.order)
    if (const auto d = static_cast<size_t>(dim); nest.block[d] > nest.tile[d]) {
      inner = (columns >> d & 1) != 0 ? 1 : 0;
      break;
    }
  const double number =
      4.0 * static_cast<double>(matrix_->parts) / static_cast<double>(matrix_->each());  // bytes
  const std::array<double, 2> loads = loads_in_step(matrix_->parts);
  const double step = MatrixShape::kWords * static_cast<double>(matrix_->each());
  double loading = 0;  // whole lines, one behind the other: as fast as caches can
  for (size_t side = 0; side < 2; ++side) {
    const double points = side == inner ? std::max(block[side], tile[side]) : tile[side];
    const double bytes = loads[side] * tile[side] * 4 * MatrixShape::kWords;
    loading += bytes * kWholeLines * seconds_of_byte(target_, points * depth * number);
  }
  const double multiplying = products * tile[0] * tile[1] * 2 * step / unit;
  const double side_by_side = tile[0] * tile[1] / MatrixShape::kWords;
  const double slower = std::max({loading / multiplying, kLatency / side_by_side, 1.0});
  return filled_up(nest) * slower * products * target_.peak(DType::f32) / unit;
}

// Steps are whole, so the end of the dim that words are taken along has zeros in it.
double KernelPrice::filled_up(const Nest& nest) const {
  size_t inner = 0;
  for (size_t l = static_cast<size_t>(parallel_); l < loops_.size(); ++l)
    if (inner == 0 || loops_[l].extent >= loops_[inner].extent) inner = l;
  if (word_loop_) inner = static_cast<size_t>(*word_loop_);
  const double step = static_cast<double>(MatrixShape::kWords * matrix_->each());
  return std::ceil(nest.block[inner] / step) * step / nest.block[inner];
}

// The price of a vector that goes to memory and back.
double KernelPrice::slots_of_sums(const Nest& nest) const {
  if (target_.caches.empty()) return 0;
  double bytes = 4;
  for (size_t l = 0; l < loops_.size(); ++l)
    if (loops_[l].is_result) bytes *= nest.block[l];
  return 2 * kLine * seconds_of_byte(target_, bytes) / slot_;
}

// The price of copying a number into a panel. Numbers in one part are copied by words.
double KernelPrice::matrix_panel_slots(const Nest& nest, const Access& access) const {
  constexpr double kOfParts = 0.75;  // measured, of 1 to 3 parts
  const auto parts = static_cast<double>(matrix_->parts);
  const double together = matrix_->parts == 1 ? static_cast<double>(matrix_->each()) : 1;
  // Panels of columns have these side by side, panels of rows have words so.
  const bool has_columns = (access.loops >> nest.lanes & 1) != 0;
  double run = 0;  // numbers side by side in memory, too
  for (size_t l = 0; l < loops_.size(); ++l) {
    if (has_columns && static_cast<int>(l) == nest.lanes &&
        (access.along[l].stride == 1 || access.along[l].stride == together))
      run = nest.tile[l] * together;
    if (!has_columns && !loops_[l].is_result && access.along[l].stride == 1 &&
        access.run >= together * MatrixShape::kWords)
      run = nest.block[l];
  }
  const double copies = filled_up(nest) * kOfParts * prices_.split * parts * parts;
  if (run == 0) return copies * prices_.panel_copy;  // each lane is stored by itself
  return copies * prices_.panel_copy / vector_ + slots_of_jumps(nest, access, !has_columns) / run;
}

// The price of the way to the next run, where that is a page or more and only memory has the array.
// A core does not fetch such a run ahead of time.
double KernelPrice::slots_of_jumps(const Nest& nest, const Access& access, bool is_along) const {
  constexpr double kFar = 400;  // measured
  const size_t near = target_.caches.size() > 1 ? target_.caches.size() - 2 : 0;
  if (target_.caches.empty() || access.bytes <= static_cast<double>(target_.caches[near].bytes))
    return 0;
  for (size_t l = 0; l < loops_.size(); ++l) {
    const bool crosses = is_along ? loops_[l].is_result && nest.tile[l] > 1
                                  : !loops_[l].is_result && loops_[l].extent > 1;
    if (crosses && std::abs(access.along[l].stride) * access.element >= kPage) return kFar;
  }
  return 0;
}

}  // namespace hone
