#include <cmath>
#include <limits>

#include "cost/gpu_block_price.h"
#include "kernel/algorithms/block_winograd.h"

namespace hone {

namespace {

constexpr double kTransformSlots = 3;  // instructions for each number of a tile, in each dim
constexpr double kPlaceSlots = 2;      // that find its place

class WinogradTimes {
 public:
  WinogradTimes(const BlockWinograd& all, const Target& target) : all_(all), target_(target) {}

  // Both transforms: a thread each for a channel, or a feature with what comes behind the conv.
  void add_to(GpuTimes& times, double behind) {
    const double products = real(all_.shape.products);
    const double dims = real(std::ssize(all_.across));
    const double slots = products * (dims * kTransformSlots + kPlaceSlots);
    add(all_.shape.channels, slots, times);
    add(all_.shape.features, slots + products * behind, times);
    times.latency += 2 * target_.gpu->launch;
  }

 private:
  static double real(int64_t n) { return static_cast<double>(n); }

  // A number of a tile is read and written once. Memory gives what the last cache does
  // not hold.
  void add(int64_t lines, double slots, GpuTimes& times) const {
    const auto sms = real(target_.cores);
    const double threads = real(all_.dims.groups * all_.tiles * lines);
    const double resident = sms * real(target_.gpu->warps * kWarpLanes);
    times.arithmetic += threads * slots / (kGpuSlotsOfPeak * target_.peak(DType::f32) * sms);
    times.latency += std::ceil(threads / resident) * slots / kGpuOverlap * kGpuStep;
    const double bytes =
        threads * real(all_.shape.products) * bits(all_.dtype) / 8;  // of what is transformed
    const CacheLevel& last = target_.caches.back();
    times.access += 2 * bytes / (last.bytes_per_second * sms);
    if (bytes > real(last.bytes))
      times.memory += 2 * bytes / (kGpuReached * target_.memory_all_cores);
  }

  const BlockWinograd& all_;
  const Target& target_;
};

}  // namespace

GpuTimes block_winograd_times(const KernelFacts& facts, const BlockWinogradRoles& roles,
                              const Schedule& schedule, const Target& target) {
  const auto& [points, stages] = schedule.get<BlockWinogradFields>();
  const BlockWinogradRoles::One* one = roles.with(points);
  const bool is_by_tiles = stages.size() == 1 && stages[0].if_is<BlockTilesFields>() != nullptr;
  if (one == nullptr || !is_by_tiles) return {.latency = std::numeric_limits<double>::infinity()};
  GpuTimes times = block_tiles_times(one->product, stages[0], target);
  double behind = 0;
  for (const KernelFacts::Arithmetic& each : facts.arithmetic)
    if (!each.is_sum) behind += each.share;
  WinogradTimes(one->winograd, target).add_to(times, behind);
  return times;
}

}  // namespace hone
