#include "cost/gpu_cost.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "cost/analytic.h"

namespace hone {

namespace {

constexpr double kSector = 32;         // bytes that an access takes at least
constexpr double kSlotsOfPeak = 0.25;  // instructions that an SM starts, per operation of its peak
constexpr double kStep = 2e-8;         // seconds from one operation of a thread to the next
constexpr double kReached = 0.9;       // of the bandwidth of memory

class GpuKernelPrice : public PricedKernel {
 public:
  GpuKernelPrice(std::shared_ptr<const KernelFacts> facts, const Target& target)
      : facts_(std::move(facts)), target_(target) {
    for (const KernelFacts::Array& array : facts_->arrays) bytes_ += array.bytes * array.share;
  }

  void price(std::span<const Schedule> schedules, double /*limit*/,
             std::span<double> seconds) override {
    for (size_t i = 0; i < schedules.size(); ++i) seconds[i] = times_of(schedules[i]).total();
  }

  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    const Times times = times_of(schedule);
    return {{"launch", times.launch},
            {"arithmetic", times.arithmetic},
            {"latency", times.latency},
            {"memory", times.memory},
            {"access", times.access}};
  }

 private:
  struct Times {
    double launch = 0, arithmetic = 0, latency = 0, memory = 0, access = 0;
    double total() const { return launch + std::max({arithmetic, latency, memory, access}); }
  };

  // The points of a dim that one trip of a divided loop takes.
  static double points_of(const Schedule& schedule, int dim) {
    double points = 1;
    const auto take = [&](const std::vector<Tile>& tiles) {
      for (const Tile& tile : tiles)
        if (tile.dim == dim) points = std::max(points, static_cast<double>(tile.count));
    };
    take(schedule.lanes);
    take(schedule.unroll);
    each_own_field(schedule, [&](std::string_view /*name*/, const auto& field) {
      if constexpr (std::is_same_v<decltype(field), const std::vector<Tile>&>) take(field);
    });
    return points;
  }

  double extent(int dim) const {
    const auto at = static_cast<size_t>(dim);
    return at < facts_->loops.size() ? facts_->loops[at].extent : 1;
  }

  // Trips that run side by side.
  double trips_of(const Schedule& schedule) const {
    double trips = 1;
    const size_t divided =
        std::min(schedule.order.size(), static_cast<size_t>(std::max(schedule.threads, 0)));
    for (size_t i = 0; i < divided; ++i)
      trips *= std::ceil(extent(schedule.order[i]) / points_of(schedule, schedule.order[i]));
    return trips;
  }

  double operations_of(const Schedule& schedule) const {
    const auto* nest = schedule.if_is<NestFields>();
    const bool repeats = nest != nullptr && nest->row == 0 && facts_->work.operations > 0;
    return std::max(repeats ? facts_->work.operations : facts_->work.inherent, 1.0);
  }

  // The bytes that all accesses together ask of the last cache.
  double accessed(const Schedule& schedule) const {
    const int inner =
        schedule.threads < 1 || schedule.order.empty()
            ? -1
            : schedule
                  .order[std::min(schedule.order.size(), static_cast<size_t>(schedule.threads)) -
                         1];
    double all = 0;
    for (const KernelFacts::Array& array : facts_->arrays) {
      double count = array.share;
      for (size_t i = 0; i < facts_->loops.size(); ++i)
        if ((array.loops >> i & 1U) != 0) count *= facts_->loops[i].extent;
      const double stride = inner < 0 || static_cast<size_t>(inner) >= array.stride.size()
                                ? 0
                                : array.stride[static_cast<size_t>(inner)];
      // False for NaN: such places are anywhere.
      const bool are_neighbours = inner >= 0 && std::abs(stride) <= 1;
      all += count * (are_neighbours ? array.element : std::max(array.element, kSector));
    }
    return all;
  }

  Times times_of(const Schedule& schedule) const {
    const Gpu& gpu = *target_.gpu;
    const auto sms = static_cast<double>(target_.cores);
    const double trips = trips_of(schedule);
    const double resident = sms * static_cast<double>(gpu.warps * kWarpLanes);
    const double operations = operations_of(schedule);
    const double near = target_.caches.back().bytes_per_second * sms;
    Times times;
    times.launch = gpu.launch;
    times.arithmetic = operations / (kSlotsOfPeak * target_.peak(DType::f32) * sms);
    times.latency = operations / std::min(trips, resident) * kStep;
    times.memory = bytes_ / (kReached * target_.memory_all_cores);
    times.access = accessed(schedule) / near;
    return times;
  }

  const std::shared_ptr<const KernelFacts> facts_;
  const Target& target_;
  double bytes_ = 0;  // of all arrays, each once
};

}  // namespace

GpuCost::GpuCost(Target target) : target_(std::move(target)) {
  HONE_CHECK(target_.gpu, "the target '{}' is a CPU", target_.name);
}

std::string GpuCost::version() const {
  return fmt::format("gpu analytic {:016x}", hash_string(print(target_)));
}

std::unique_ptr<PricedKernel> GpuCost::kernel(std::shared_ptr<const KernelFacts> facts,
                                              int64_t /*threads*/) const {
  return std::make_unique<GpuKernelPrice>(std::move(facts), target_);
}

double GpuCost::copy(double bytes) const {
  return 2 * bytes / (kReached * target_.memory_all_cores);
}

double GpuCost::command() const { return target_.gpu->launch; }

std::shared_ptr<const Cost> analytic_cost(const Target& target) {
  if (target.gpu) return std::make_shared<GpuCost>(target);
  return std::make_shared<AnalyticCost>(target);
}

}  // namespace hone
