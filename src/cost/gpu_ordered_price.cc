#include "cost/gpu_ordered_price.h"

#include <algorithm>
#include <cmath>

#include "program/build/kernel.h"
#include "program/tiles/calling.h"

namespace hone {

namespace {

double largest(const Dim& extent) { return static_cast<double>(extent.range().high); }

// One trip of a phase, as a thread takes it.
class Trip {
 public:
  Trip(const TileProgram& program, const tile::Loop& phase) : program_(program) { walk(phase, 1); }

  double instructions() const { return instructions_; }
  double bytes() const { return bytes_; }  // that its accesses ask of the last cache

 private:
  void walk(const tile::Loop& loop, double times) {
    if (loop.exec == Exec::threads)
      lane_ = loop.index;
    else
      times *= largest(program_.indices[static_cast<size_t>(loop.index)].high);
    for (const tile::Statement& statement : loop.body) {
      if (const auto* inner = std::get_if<tile::Loop>(&statement.kind)) {
        walk(*inner, times);
        continue;
      }
      instructions_ += times;
      if (const auto* load = std::get_if<tile::Load>(&statement.kind))
        bytes_ += times * bytes_of_access(load->buffer, load->index);
      if (const auto* store = std::get_if<tile::Store>(&statement.kind))
        bytes_ += times * bytes_of_access(store->buffer, store->index);
    }
  }

  // A sector, unless threads side by side have neighbours.
  double bytes_of_access(tile::BufferId buffer, const std::vector<IndexExpr>& index) const {
    const double element = bits(program_.buffers[buffer].type.dtype()) / 8.0;
    const bool are_neighbours =
        lane_ >= 0 && !index.empty() && index.back().coefficient(lane_) == 1;
    return are_neighbours ? element : std::max(element, kGpuSector);
  }

  const TileProgram& program_;
  tile::Index lane_ = -1;  // the loop whose points threads side by side have
  double instructions_ = 0, bytes_ = 0;
};

}  // namespace

GpuTimes ordered_times(const KernelBody& body, const Target& target) {
  const TileProgram program = build_kernel(body, {.own = GenericFields{}}, "priced").value();
  const auto sms = static_cast<double>(target.cores);
  const double resident = sms * static_cast<double>(target.gpu->warps * kWarpLanes);
  GpuTimes times;
  for (const tile::Loop& phase : program.phases) {
    const Trip trip(program, phase);
    const double trips = std::max(largest(trips_of(phase, program)), 1.0);
    times.arithmetic +=
        trips * trip.instructions() / (kGpuSlotsOfPeak * target.peak(DType::f32) * sms);
    times.latency += trip.instructions() * std::ceil(trips / resident) * kGpuStep;
    times.access += trips * trip.bytes() / (target.caches.back().bytes_per_second * sms);
  }
  return times;
}

}  // namespace hone
