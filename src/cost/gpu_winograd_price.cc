#include <cmath>
#include <limits>

#include "cost/gpu_block_price.h"
#include "kernel/algorithms/block_winograd.h"

namespace hone {

namespace {

constexpr double kTransformSlots = 3;  // instructions for each number of a tile, in each dim
constexpr double kPlaceSlots = 2;      // that find its place

// Three launches follow one another. Threads transform the data of a tile, a channel each. Blocks
// multiply. Threads make the results of a tile, a feature each, with what comes behind the conv.
class WinogradTimes {
 public:
  WinogradTimes(const KernelFacts& facts, const BlockWinograd& all, const Target& target)
      : facts_(facts), all_(all), target_(target) {}

  // `times`: of the product, without the launch and the bytes from memory.
  GpuTimes times(GpuTimes times) const {
    const double products = real(all_.shape.products);
    const double slots = products * (real(std::ssize(all_.across)) * kTransformSlots + kPlaceSlots);
    double data = 0, others = 0, behind = 0;
    for (const KernelFacts::Array& array : facts_.arrays)
      if (array.side != 1) (array.side == 0 ? data : others) += array.share * array.bytes;
    for (const KernelFacts::Arithmetic& each : facts_.arithmetic)
      if (!each.is_sum) behind += each.share;
    const int64_t channels = all_.shape.channels, features = all_.shape.features;
    times.transforms = transform(channels, slots, data).total() +
                       transform(features, slots + products * behind, others).total();
    times.launch = target_.gpu->launch;
    const double weights = products * real(all_.dims.groups * channels * features) * number();
    times.memory +=
        from_memory(weights + beyond_cache(bytes_of(channels)) + beyond_cache(bytes_of(features)));
    return times;
  }

 private:
  static double real(int64_t n) { return static_cast<double>(n); }
  double threads_of(int64_t lines) const { return real(all_.dims.groups * all_.tiles * lines); }
  double number() const { return bits(all_.dtype) / 8.0; }
  double bytes_of(int64_t lines) const {
    return threads_of(lines) * real(all_.shape.products) * number();
  }
  // Memory gives what the last cache does not hold.
  double beyond_cache(double bytes) const {
    return bytes > real(target_.caches.back().bytes) ? bytes : 0;
  }
  double from_memory(double bytes) const {
    return bytes / (kGpuReached * target_.memory_all_cores);
  }

  // `arrays`: bytes of memory, beside the transformed numbers. Windows overlap, so a thread reads
  // as many numbers as it writes.
  GpuTimes transform(int64_t lines, double slots, double arrays) const {
    const auto sms = real(target_.cores);
    const double threads = threads_of(lines), bytes = bytes_of(lines);
    const double resident = sms * real(target_.gpu->warps * kWarpLanes);
    return {.launch = target_.gpu->launch,
            .arithmetic = threads * slots / (kGpuSlotsOfPeak * target_.peak(DType::f32) * sms),
            .latency = std::ceil(threads / resident) * slots / kGpuOverlap * kGpuStep,
            .memory = from_memory(arrays + beyond_cache(bytes)),
            .access = 2 * bytes / (target_.caches.back().bytes_per_second * sms)};
  }

  const KernelFacts& facts_;
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
  return WinogradTimes(facts, one->winograd, target)
      .times(block_tiles_times(one->product, stages[0], target));
}

}  // namespace hone
