#include <algorithm>
#include <bit>
#include <cmath>

#include "cost/kernel_nest.h"
#include "kernel/contraction.h"
#include "kernel/kernel_kind.h"

// The numbers of features.def.

namespace hone {
namespace {

constexpr double kWindow = 16;  // the most points of a reduction that counts as a window
constexpr double kKilo = 1024;

}  // namespace

Features KernelPrice::features_of_kernel(const KernelFacts& facts) const {
  Features to;
  const std::string_view kind = kernel_kind(facts, Algorithm::generic);
  to.is_dot = as_switch(kind == "dot");
  to.is_gemv = as_switch(kind == "gemv");
  to.is_conv = as_switch(kind == "conv");
  to.is_conv_1x1 = as_switch(kind == "conv 1x1");
  to.is_depthwise = as_switch(kind == "depthwise");
  to.is_pool = as_switch(kind == "pool");
  to.is_rows = as_switch(kind == "rows");
  to.is_elementwise = as_switch(kind == "elementwise");
  double points = 1, reduced = 1, window = 1;
  for (size_t l = 0; l < loops_.size(); ++l) {
    const double extent = std::max(loops_[l].extent, 1.0);
    (loops_[l].is_result ? points : reduced) *= extent;
    if (!loops_[l].is_result && extent < kWindow) window *= extent;
  }
  // A body that takes too much work for one nest has no loops.
  const auto extent_before_end = [&](int back) {
    const auto l = static_cast<size_t>(parallel_ - back);
    return parallel_ >= back && l < loops_.size() ? loops_[l].extent : 1.0;
  };
  to.points = log_feature(points);
  to.reduced = log_feature(reduced);
  to.window = log_feature(window);
  to.last_extent = log_feature(extent_before_end(1));
  to.second_extent = log_feature(extent_before_end(2));
  double heavy = 0;
  for (const Work& work : work_)
    if (!work.is_sum) heavy += slots_alone(work);
  to.work = log_feature(work_slots_ / points);
  to.heavy = share(heavy, work_slots_);
  double written = 0, apart = 0, widest = 4;
  for (const Access& access : accesses_) {
    if (access.is_store) written += access.bytes;
    const bool has_last = parallel_ > 0 && static_cast<size_t>(parallel_) <= loops_.size();
    const Loops last = has_last ? 1U << (parallel_ - 1) : 0;
    if ((access.loops & last) != 0 && (access.contiguous & last) == 0) apart += access.bytes;
    to.has_guards = std::max(to.has_guards, as_switch(access.guards != 0));
    widest = std::max(widest, access.element);
  }
  for (const KernelFacts::Array& array : facts.arrays)
    to.is_looked_up = std::max(to.is_looked_up, as_switch(array.data != 0));
  to.bytes = log_feature(bytes_);
  to.bytes_per_slot = log_feature(16 * bytes_ / std::max(work_slots_, 1.0));
  to.written = share(written, bytes_);
  to.is_apart = share(apart, bytes_);
  to.arrays = static_cast<float>(accesses_.size());
  to.width = static_cast<float>(widest);
  float* const fills[] = {&to.fills_first, &to.fills_second, &to.fills_last};
  for (size_t c = 0; c < std::min(target_.caches.size(), std::size(fills)); ++c)
    *fills[c] = log_feature(bytes_ / static_cast<double>(target_.caches[c].bytes));
  return to;
}

void KernelPrice::describe_terms(const KernelTerms& terms, const Nest& nest, const Counted& counted,
                                 Features& to) const {
  const double total = terms.total();
  to.seconds = log_feature(total * 1e9);
  to.by_arithmetic = share(terms.arithmetic, total);
  to.by_access = share(terms.access, total);
  to.by_latency = share(terms.latency, total);
  to.by_memory = share(terms.memory, total);
  to.by_overhead = share(terms.overhead, total);
  to.by_copies = share(nest.copies * slot_ / counted.threads, total);
  to.by_starts = share(counted.starts, counted.access);
  to.waste = log_feature(counted.arithmetic * vector_ / std::max(work_slots_, 1.0));
  to.accesses = log_feature(counted.access / std::max(counted.arithmetic, 1.0));
  to.trips = log_feature(64 * counted.trips / (counted.access + counted.arithmetic + 1));
  to.divided_trips = log_feature(256 * counted.divided / (counted.access + counted.arithmetic + 1));
  to.spilled = static_cast<float>(counted.spilled);
  to.registers = static_cast<float>(std::min(counted.sums / registers_, 4.0));
  to.sums = log_feature(counted.sums);
  to.code = log_feature(counted.code);
  to.threads = log_feature(counted.threads);
  to.balance = static_cast<float>(counted.balance);
}

void KernelPrice::describe_memory(const Nest& nest, const Counted& counted, Features& to) const {
  const double depth = std::max<double>(static_cast<double>(nest.count), 1);
  to.first_bytes = log_feature(counted.levels[0].bytes / std::max(bytes_, 1.0));
  to.second_bytes = log_feature(counted.levels[1].bytes / std::max(bytes_, 1.0));
  to.last_bytes = log_feature(counted.levels[2].bytes / std::max(bytes_, 1.0));
  to.first_level = share(static_cast<double>(counted.levels[0].outside), depth);
  to.second_level = share(static_cast<double>(counted.levels[1].outside), depth);
  to.tile_bytes = log_feature(counted.tile_bytes / kLine);
}

void KernelPrice::describe_accesses(const Nest& nest, const Counted& counted, Features& to) const {
  double all = 0, vectors = 0, shared = 0, near = 0, apart = 0, packed = 0;
  double writes = 0, writes_apart = 0, masked = 0, branched = 0, crowded = 0, cut = 0;
  const Loops lanes = nest.lanes < 0 ? 0 : 1U << nest.lanes;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    const Access& access = accesses_[a];
    const double slots = counted.by_access[a];
    all += slots;
    if (nest.packing(access) != Packing::panels && is_crowded(nest, access)) crowded += slots;
    if (access.cut != 0 && nest.is_cut(access.cut)) ++cut;
    const bool is_along = (access.loops & lanes) != 0;
    const bool is_vector =
        is_along && (access.contiguous & lanes) != 0 && nest.lane_count <= access.run;
    if (access.is_store) {
      (is_along && !is_vector ? writes_apart : writes) += slots;
    } else if (nest.packing(access) == Packing::panels) {
      packed += slots;
    } else {
      const bool is_near = is_along && (access.near & lanes) != 0;
      (!is_along ? shared : is_vector ? vectors : is_near ? near : apart) += slots;
      const Loops guards = nest.guards(access);
      if (nest.packing(access) == Packing::no && guards != 0)
        ((guards & lanes) != 0 ? masked : branched) += slots;
    }
  }
  to.reads_vectors = share(vectors, all);
  to.reads_shared = share(shared, all);
  to.reads_near = share(near, all);
  to.reads_apart = share(apart, all);
  to.writes_vectors = share(writes, all);
  to.writes_apart = share(writes_apart, all);
  to.masked = share(masked, all);
  to.branched = share(branched, all);
  to.packed = share(packed, all);
  to.crowded = share(crowded, all);
  to.runs = log_feature(counted.runs);
  to.followed = share(counted.followed, counted.runs);
  to.cut = share(cut, static_cast<double>(accesses_.size()));
  const bool has_tail =
      nest.lanes >= 0 &&
      !divides(nest.lane_count, std::max(loops_[static_cast<size_t>(nest.lanes)].extent, 1.0));
  to.apart_in_tails = has_tail ? share(near + apart + writes_apart, all) : 0;
}

void KernelPrice::describe_tiles(const Schedule& schedule, const Nest& nest, Features& to) const {
  to.vectors = static_cast<float>(std::ceil(nest.lane_count / vector_));
  to.lanes = log_feature(nest.lane_count - 1);
  if (nest.lanes >= 0) {
    const double extent = std::max(loops_[static_cast<size_t>(nest.lanes)].extent, 1.0);
    const double groups = std::ceil(extent / nest.lane_count);
    to.lane_fill = share(extent, groups * std::ceil(nest.lane_count / vector_) * vector_);
    to.lane_tail = as_switch(!divides(nest.lane_count, extent));
    to.lane_excess = static_cast<float>(std::max(1 - extent / nest.lane_count, 0.0));
    to.lane_innermost = as_switch(!schedule.order.empty() && schedule.order.back() == nest.lanes);
    to.lane_last = as_switch(nest.lanes == parallel_ - 1);
    to.lane_reduced = as_switch(!loops_[static_cast<size_t>(nest.lanes)].is_result);
  }
  double all = 1, reduced = 1, most = 1, in_whole = 1;
  bool window_whole = true, has_window = false;
  for (size_t l = 0; l < loops_.size(); ++l) {
    const double extent = std::max(loops_[l].extent, 1.0), tile = nest.tile[l];
    const bool is_lane = static_cast<int>(l) == nest.lanes;
    const double unroll = is_lane ? std::max(tile / nest.lane_count, 1.0) : tile;
    if (!loops_[l].is_result && extent > 1 && extent < kWindow) {
      has_window = true;
      window_whole = window_whole && tile == extent;
    }
    if (tile <= 1) continue;
    const double whole = std::floor(extent / tile) * tile;
    in_whole *= whole / extent;
    if (whole != extent) ++to.unroll_tails;
    if (unroll <= 1) continue;
    ++to.unroll_dims;
    all *= unroll;
    most = std::max(most, unroll);
    if (!loops_[l].is_result) reduced *= unroll;
    if (tile == extent) ++to.unroll_whole;
  }
  to.unroll = log_feature(all - 1);
  to.unroll_reduced = log_feature(reduced - 1);
  to.unroll_most = log_feature(most - 1);
  to.in_tails = static_cast<float>(1 - in_whole);
  to.window_whole = as_switch(has_window && window_whole);
}

void KernelPrice::describe_loops(const Schedule& schedule, const Nest& nest, Features& to) const {
  int inner = -1, depth = 0;
  for (size_t i = nest.count; i-- > 0;) {
    if (nest.steps[i].trips <= 1) continue;
    if (depth == 0) {
      inner = nest.steps[i].loop;
      to.inner_trips = log_feature(nest.steps[i].trips);
    } else if (depth == 1) {
      to.second_trips = log_feature(nest.steps[i].trips);
    }
    ++depth;
  }
  to.depth = static_cast<float>(depth);
  if (inner >= 0) {
    const auto l = static_cast<size_t>(inner);
    double vectors = 0, still = 0, most = 0;
    for (const Access& access : accesses_) {
      if ((access.loops >> l & 1) == 0) {
        ++still;
      } else {
        if (access.along[l].stride == 1) ++vectors;
        const double bytes = std::abs(access.along[l].stride) * access.element * nest.tile[l];
        most = std::max(most, std::isnan(bytes) ? kPage : bytes);
      }
    }
    const auto count = static_cast<double>(accesses_.size());
    to.inner_reduced = as_switch(!loops_[l].is_result);
    to.inner_vectors = share(vectors, count);
    to.inner_still = share(still, count);
    to.inner_stride = log_feature(most);
  }
  double pairs = 0, swapped = 0;
  for (size_t i = 0; i < schedule.order.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      ++pairs;
      if (schedule.order[j] > schedule.order[i]) ++swapped;
    }
  to.out_of_order = share(swapped, pairs);
  const auto* own = schedule.if_is<NestFields>();
  to.is_nest = as_switch(own != nullptr);
  if (own == nullptr || own->row == 0) return;
  double row = 1;
  for (auto i = static_cast<size_t>(own->row); i < schedule.order.size(); ++i)
    row *= std::max(loops_[static_cast<size_t>(schedule.order[i])].extent, 1.0);
  to.row = share(own->row, parallel_);
  to.row_points = log_feature(row);
}

void KernelPrice::describe_gemm(const Schedule& schedule, const Nest& nest, Features& to) const {
  const GemmFields& own = schedule.get<GemmFields>();
  to.is_gemm = 1;
  to.lhs_panels = as_switch(own.pack_lhs == Packing::panels);
  to.lhs_window = as_switch(own.pack_lhs == Packing::window);
  to.rhs_panels = as_switch(own.pack_rhs == Packing::panels);
  to.is_split = as_switch(nest.matrix.has_value());
  std::array<Loops, 2> sides = {};
  for (const Access& access : accesses_)
    if (access.side == 0 || access.side == 1)
      sides[static_cast<size_t>(access.side)] |= access.loops;
  std::array<double, 2> tile = {1, 1}, block = {4, 4}, read = {4, 4};
  double depth = 1, passes = 1, results = 1;
  for (size_t l = 0; l < loops_.size(); ++l) {
    const double extent = std::max(loops_[l].extent, 1.0);
    const bool is_blocked = tile_of(own.block, static_cast<int>(l)) > 1;
    if (is_blocked) ++to.block_dims;
    if (!divides(nest.block[l], extent)) ++to.block_tails;
    if (loops_[l].is_result) results *= extent;
    if (!loops_[l].is_result) {
      depth *= nest.block[l];
      passes *= std::ceil(extent / nest.block[l]);
      if (nest.block[l] != extent) to.depth_blocked = 1;
    }
    for (size_t side = 0; side < 2; ++side) {
      if ((sides[side] >> l & 1) == 0) continue;
      block[side] *= nest.block[l];
      read[side] *= loops_[l].is_result ? nest.tile[l] : nest.block[l];
      if (loops_[l].is_result && (sides[1 - side] >> l & 1) == 0) tile[side] *= nest.tile[l];
    }
  }
  to.lhs_tile = log_feature(tile[0]);
  to.rhs_tile = log_feature(tile[1]);
  to.block_depth = log_feature(depth);
  to.passes = log_feature(passes - 1);
  to.passed = log_feature(16 * (passes - 1) * results / std::max(work_slots_, 1.0));
  to.lhs_block = log_feature(block[0] / kKilo);
  to.rhs_block = log_feature(block[1] / kKilo);
  to.lhs_tile_bytes = log_feature(read[0] / kKilo);
  to.rhs_tile_bytes = log_feature(read[1] / kKilo);
}

}  // namespace hone
