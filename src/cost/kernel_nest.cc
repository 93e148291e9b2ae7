#include "cost/kernel_nest.h"

#include <bit>

// The loops of a schedule, and how often they run what depends on some of them.

namespace hone {
namespace {

constexpr double kWidenedQuad = 5;  // slots without an instruction for four products
constexpr double kWordCopies = 2;   // copying bytes into words takes as long as this many copies

// Products of pairs by vectors in the time of one of f32. With AMX the peak is that of the matrix
// unit; processors that have it start such an instruction in every other cycle.
double faster_pairs(const Target& target) {
  constexpr double kBesideMatrixUnit = 0.5;
  if (target.extensions.contains(Extension::amx_bf16)) return kBesideMatrixUnit;
  return target.peak(DType::bf16) / target.peak(DType::f32);
}

}  // namespace

KernelPrice::Nest KernelPrice::nest_of(const Schedule& schedule) const {
  Nest nest;
  nest.known.fill(0);
  nest.divided = static_cast<size_t>(schedule.threads);
  for (size_t l = 0; l < loops_.size(); ++l) {
    const int dim = static_cast<int>(l);
    const double lanes = static_cast<double>(tile_of(schedule.lanes, dim));
    const double unroll = static_cast<double>(tile_of(schedule.unroll, dim));
    const double extent = std::max(loops_[l].extent, 1.0);
    if (lanes > 1) {
      nest.lanes = dim;
      nest.lane_count = lanes;
    }
    nest.tile[l] = std::min(unroll * lanes, extent);
    // The last vector may be filled in part.
    const double filled = extent / (std::ceil(extent / lanes) * lanes);
    nest.instructions[l] =
        std::max(nest.tile[l] / lanes / filled, 1.0) * std::ceil(lanes / vector_);
  }
  for (size_t l = 0; l < loops_.size(); ++l) nest.block[l] = std::max(loops_[l].extent, 1.0);
  return nest;
}

// Loops that threads do not divide end where operands of concats meet, and tiles with them.
void KernelPrice::end_at_cuts(const Schedule& schedule, Nest& nest) const {
  if (!is_whole_) return;
  Loops divided = 0;
  for (int i = 0; i < schedule.threads && i < parallel_; ++i)
    divided |= 1U << (schedule.order.empty() ? i : schedule.order[static_cast<size_t>(i)]);
  for (size_t l = 0; l < static_cast<size_t>(parallel_); ++l) {
    const int64_t lanes = tile_of(schedule.lanes, static_cast<int>(l));
    const std::span<const int64_t> cuts = loops_[l].cuts_between(lanes);
    if (cuts.empty() || (divided >> l & 1) != 0) continue;
    nest.cut |= 1U << l;
    double longest = loops_[l].extent - static_cast<double>(cuts.back()), before = 0;
    for (int64_t cut : cuts) {
      longest = std::max(longest, static_cast<double>(cut) - before);
      before = static_cast<double>(cut);
    }
    if (nest.tile[l] <= longest) continue;
    nest.instructions[l] = std::max(nest.instructions[l] * longest / nest.tile[l], 1.0);
    nest.tile[l] = longest;
  }
}

void KernelPrice::add_nest(const Schedule& schedule, Nest& nest) const {
  end_at_cuts(schedule, nest);
  const auto trips = [&](int loop) {
    const auto l = static_cast<size_t>(loop);
    return std::max(loops_[l].extent, 1.0) / nest.tile[l];
  };
  const auto* own = schedule.if_is<NestFields>();  // generic kernels have none
  const auto row = static_cast<size_t>(own == nullptr ? 0 : own->row);
  for (int i = 0; i < parallel_; ++i) {
    // Generic kernels have no order.
    const int dim = schedule.order.empty() ? i : schedule.order[static_cast<size_t>(i)];
    nest.add(dim, trips(dim));
    const size_t end = static_cast<size_t>(i) < row ? row : static_cast<size_t>(parallel_);
    const auto d = static_cast<size_t>(dim);
    nest.known[d] = static_cast<uint8_t>(nest.tile[d] > 1 ? end : nest.count);
  }
  // Reductions in a row take the tiles of the dims inside of it.
  double inner = 1, inner_lanes = 1;
  Loops in_row = 0;
  for (size_t i = row; row > 0 && i < schedule.order.size(); ++i) {
    inner *= nest.tile[static_cast<size_t>(schedule.order[i])];
    in_row |= 1U << schedule.order[i];
    if (schedule.order[i] == nest.lanes) inner_lanes = nest.lane_count;
  }
  for (size_t l = static_cast<size_t>(parallel_); l < loops_.size(); ++l) {
    if (row > 0 && nest.tile[l] == 1 && (loops_[l].around & in_row) == 0) {
      nest.tile[l] = std::min(inner, std::max(loops_[l].extent, 1.0));
      nest.instructions[l] =
          std::max(nest.tile[l] / inner_lanes, 1.0) * std::ceil(inner_lanes / vector_);
    }
    nest.add(static_cast<int>(l), trips(static_cast<int>(l)));
  }
}

void KernelPrice::add_gemm(const Schedule& schedule, Nest& nest) const {
  const GemmFields& own = schedule.get<GemmFields>();
  const auto extent = [&](int dim) {
    return std::max(loops_[static_cast<size_t>(dim)].extent, 1.0);
  };
  // A result's dim without a block has one tile in it, a reduction's all.
  for (int dim = 0; dim < static_cast<int>(loops_.size()); ++dim) {
    const auto d = static_cast<size_t>(dim);
    const auto named = std::ranges::find(own.block, dim, &Tile::dim);
    const double least = loops_[d].is_result ? nest.tile[d] : extent(dim);
    nest.block[d] =
        named != own.block.end() ? std::min(static_cast<double>(named->count), extent(dim)) : least;
    if (loops_[d].is_result) nest.block[d] = std::max(nest.block[d], least);
  }
  const auto block = [&](int dim) { return nest.block[static_cast<size_t>(dim)]; };
  for (int dim : schedule.order) nest.add(dim, extent(dim) / block(dim));
  size_t blocks = nest.count;
  for (int dim = parallel_; dim < static_cast<int>(loops_.size()); ++dim)
    if (block(dim) != extent(dim)) nest.add(dim, extent(dim) / block(dim));
  const bool blocks_reduction = nest.count != blocks;
  if (own.products == Products::matrix && matrix_)
    nest.matrix = slots_on_matrix_unit(schedule, nest);
  if (blocks_reduction || nest.matrix) {
    nest.passed = prices_.load + prices_.store;
    if (nest.matrix) nest.passed = std::max(nest.passed, slots_of_sums(nest));
    for (size_t i = blocks; i < nest.count; ++i) nest.passed *= std::ceil(nest.steps[i].trips);
    for (int dim : schedule.order)
      nest.passed *= extent(dim) / nest.tile[static_cast<size_t>(dim)] *
                     nest.instructions[static_cast<size_t>(dim)];
  }
  blocks = nest.count;
  for (size_t i = schedule.order.size(); i-- > 0;) {
    const int dim = schedule.order[i];
    nest.add(dim, block(dim) / nest.tile[static_cast<size_t>(dim)]);
  }
  for (int dim : schedule.order)
    nest.known[static_cast<size_t>(dim)] = static_cast<uint8_t>(nest.count);
  for (int dim = parallel_; dim < static_cast<int>(loops_.size()); ++dim) nest.add(dim, block(dim));

  nest.packings = {own.pack_lhs, own.pack_rhs};
  if (own.products == Products::quads)
    nest.word = target_.extensions.contains(Extension::avx512_vnni) ? 1 : kWidenedQuad;
  if (own.products == Products::pairs) nest.word = in_word_ / faster_pairs(target_);
  for (int side = 0; side < 2; ++side) {
    if (nest.packings[static_cast<size_t>(side)] == Packing::no) continue;
    Loops needed = 0;
    for (const Access& access : accesses_)
      if (access.side == side) needed |= access.loops;
    // Once per block of the dims outside of the last one that it depends on, and in each trip that
    // some thread takes: threads have nothing in common.
    double times = 1, outside = 1;
    for (size_t i = 0; i < blocks; ++i) {
      outside *= nest.steps[i].trips;
      const bool is_shared = (needed >> nest.steps[i].loop & 1) == 0 && !blocks_reduction;
      if (is_shared && i >= static_cast<size_t>(schedule.threads)) continue;
      times *= outside;
      outside = 1;
    }
    if (nest.word && nest.packings[static_cast<size_t>(side)] == Packing::panels)
      times *= kWordCopies;
    nest.copies += times * (is_made(side) ? made_by_block(schedule, nest, side)
                                          : copied_by_block(schedule, nest, side));
  }
}

// ---- Instructions ------------------------------------------------------------------------------

// The results' loops before this step are around what depends on these loops: it stands in the
// outermost place where its index is known.
size_t KernelPrice::depth(const Nest& nest, Loops loops) const {
  Loops needed = loops;
  for (Loops left = loops; left != 0; left &= left - 1)
    // A reduction's loop stands where its result is known.
    needed |= loops_[static_cast<size_t>(std::countr_zero(left))].around;
  size_t depth = nest.divided;
  for (; needed != 0; needed &= needed - 1)
    depth = std::max<size_t>(depth, nest.known[static_cast<size_t>(std::countr_zero(needed))]);
  return depth;
}

// How often something is computed that depends on these loops, in instructions. `in_each_tile`:
// tiles along other loops compute it anew, the last one as well, however small it is.
double KernelPrice::runs(const Nest& nest, Loops loops, bool in_each_tile) const {
  const size_t depth = this->depth(nest, loops);
  double count = 1;
  for (Loops left = loops; left != 0; left &= left - 1)
    count *= nest.instructions[static_cast<size_t>(std::countr_zero(left))];
  for (size_t i = 0; i < nest.count; ++i) {
    const Nest::Step& step = nest.steps[i];
    const bool is_along = (loops >> step.loop & 1) != 0;
    const bool counts = loops_[step.loop].is_result ? i < depth : is_along;
    if (counts) count *= in_each_tile && !is_along ? std::ceil(step.trips) : step.trips;
  }
  return count;
}

double KernelPrice::side_by_side(const Nest& nest, Loops loops) const {
  double count = 1;
  for (; loops != 0; loops &= loops - 1)
    count *= nest.instructions[static_cast<size_t>(std::countr_zero(loops))];
  return count;
}

}  // namespace hone
