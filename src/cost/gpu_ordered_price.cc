#include "cost/gpu_ordered_price.h"

#include <algorithm>
#include <cmath>

#include "program/build/kernel.h"
#include "program/tiles/calling.h"

namespace hone {

namespace {

double largest(const Dim& extent) { return static_cast<double>(extent.range().high); }

// One trip of a phase, as a thread takes it, or as a block does.
class Trip {
 public:
  Trip(const TileProgram& program, const tile::Loop& phase)
      : program_(program), is_by_blocks_(phase.exec == Exec::blocks) {
    walk(phase, 1, 1);
  }

  double instructions() const { return instructions_; }  // of a thread
  double barriers() const { return barriers_; }
  double bytes() const { return bytes_; }  // that its accesses ask of the last cache

 private:
  // `threads` have each statement in it, `times` times.
  void walk(const tile::Loop& loop, double times, double threads) {
    if (loop.exec == Exec::threads) {
      lane_ = loop.index;
      if (is_by_blocks_) threads = extent(loop);
    } else if (loop.exec != Exec::blocks) {
      times *= trips(loop);
    }
    for (const tile::Statement& statement : loop.body) {
      if (const auto* inner = std::get_if<tile::Loop>(&statement.kind)) {
        walk(*inner, times, threads);
        continue;
      }
      if (std::holds_alternative<tile::Barrier>(statement.kind)) barriers_ += times;
      instructions_ += times;
      if (const auto* load = std::get_if<tile::Load>(&statement.kind))
        bytes_ += times * threads * bytes_of_access(load->buffer, load->index);
      if (const auto* store = std::get_if<tile::Store>(&statement.kind))
        bytes_ += times * threads * bytes_of_access(store->buffer, store->index);
    }
  }

  double extent(const tile::Loop& loop) const {
    return largest(program_.indices[static_cast<size_t>(loop.index)].high);
  }

  // A part of the trips is half of them on average. If data says which part, threads side by side
  // have all trips together.
  double trips(const tile::Loop& loop) const {
    const std::optional<tile::Span>& span = program_.indices[static_cast<size_t>(loop.index)].span;
    if (!span) return extent(loop);
    return is_by_blocks_ ? std::max(extent(loop) / 2, 1.0) : 1;
  }

  // A sector, unless threads side by side have neighbours. Memory of a block is near.
  double bytes_of_access(tile::BufferId buffer, const std::vector<IndexExpr>& index) const {
    if (is_by_blocks_ && !is_passed(program_.buffers[buffer].role)) return 0;
    const double element = bits(program_.buffers[buffer].type.dtype()) / 8.0;
    const bool are_neighbours = lane_ >= 0 && !index.empty() && moves_by_one(index);
    return are_neighbours ? element : std::max(element, kGpuSector);
  }

  // From the first thread to the next one.
  bool moves_by_one(const std::vector<IndexExpr>& index) const {
    std::vector<int64_t> point(program_.indices.size(), 0), next = point;
    next[static_cast<size_t>(lane_)] = 1;
    const auto step = [&](const IndexExpr& expr) { return expr.at(next) - expr.at(point); };
    return std::abs(step(index.back())) == 1 &&
           std::all_of(index.begin(), index.end() - 1,
                       [&](const IndexExpr& expr) { return step(expr) == 0; });
  }

  const TileProgram& program_;
  const bool is_by_blocks_;
  tile::Index lane_ = -1;  // the loop whose points threads side by side have
  double instructions_ = 0, barriers_ = 0, bytes_ = 0;
};

class OrderedTimes {
 public:
  OrderedTimes(TileProgram program, const Target& target)
      : program_(std::move(program)), target_(target), sms_(static_cast<double>(target.cores)) {}

  // Each phase is a launch of its own.
  GpuTimes times() && {
    for (const tile::Loop& phase : program_.phases) {
      const double trips = std::max(largest(trips_of(phase, program_)), 1.0);
      if (phase.exec == Exec::blocks)
        add_blocks(phase, trips);
      else
        add_threads(phase, trips);
    }
    times_.latency += static_cast<double>(std::ssize(program_.phases) - 1) * target_.gpu->launch;
    return times_;
  }

 private:
  double warp_slots() const { return static_cast<double>(target_.gpu->warps * kWarpLanes); }

  void add(double threads, double instructions, double bytes) {
    times_.arithmetic +=
        threads * instructions / (kGpuSlotsOfPeak * target_.peak(DType::f32) * sms_);
    times_.access += bytes / (target_.caches.back().bytes_per_second * sms_);
  }

  void add_threads(const tile::Loop& phase, double trips) {
    const Trip trip(program_, phase);
    add(trips, trip.instructions(), trips * trip.bytes());
    times_.latency += trip.instructions() * std::ceil(trips / (sms_ * warp_slots())) * kGpuStep;
  }

  // Blocks that fit onto a processor run together. The threads of a block meet at barriers.
  void add_blocks(const tile::Loop& phase, double blocks) {
    const Trip trip(program_, phase);
    const auto threads = static_cast<double>(block_threads(phase, program_));
    const auto bytes = static_cast<double>(std::max<int64_t>(chip_layout(program_).bytes, 1));
    const double together =
        std::max(1.0, std::floor(std::min(warp_slots() / threads,
                                          static_cast<double>(target_.gpu->shared_bytes) / bytes)));
    add(blocks * threads, trip.instructions(), blocks * trip.bytes());
    const double steps = trip.instructions() + trip.barriers() * kGpuBarrierSlots;
    times_.latency += steps / kGpuOverlap * std::ceil(blocks / (sms_ * together)) * kGpuStep;
  }

  const TileProgram program_;
  const Target& target_;
  const double sms_;
  GpuTimes times_;
};

}  // namespace

GpuTimes ordered_times(const KernelBody& body, const Schedule& schedule, const Target& target) {
  return OrderedTimes(build_kernel(body, schedule, "priced").value(), target).times();
}

}  // namespace hone
