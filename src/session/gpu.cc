#include "session/gpu.h"

#include <algorithm>

#include "target/gpu_presets.h"

namespace hone {

namespace {

constexpr int64_t kCacheBesideShared = 28 << 10;  // bytes of an SM that no block may ask for
constexpr double kOfBandwidth = 0.9;              // that a copy reaches

// The part of the memory's bandwidth that a copy reaches; 0: the driver does not say.
Result<double> memory_rate(const CudaDevice& device) {
  constexpr double kBitsOfAByte = 8, kTransfersOfACycle = 2;
  const auto clock = 1e3 * static_cast<double>(HONE_TRY(device.attribute(cuda::kMemoryClockKhz)));
  const auto bits = static_cast<double>(HONE_TRY(device.attribute(cuda::kMemoryBusBits)));
  return kOfBandwidth * kTransfersOfACycle * clock * bits / kBitsOfAByte;
}

}  // namespace

Result<Target> gpu_target(const CudaDevice& device) {
  const auto clock = 1e3 * static_cast<double>(HONE_TRY(device.attribute(cuda::kClockKhz)));
  Target target = gpu_like_preset(device.capability(), clock);
  Gpu& gpu = *target.gpu;
  const auto sms_before = static_cast<double>(target.cores);
  target.cpu = device.name().substr(0, kMaxTargetName);
  target.cores = device.sms();
  target.memory_bytes = device.memory_bytes();
  gpu.warps = HONE_TRY(device.attribute(cuda::kThreadsOfSm)) / kWarpLanes;
  gpu.registers = HONE_TRY(device.attribute(cuda::kRegistersOfSm));
  gpu.shared_bytes = HONE_TRY(device.attribute(cuda::kSharedOfSm));
  gpu.block_shared_bytes = HONE_TRY(device.attribute(cuda::kSharedOfBlock));
  target.caches[0].bytes = gpu.shared_bytes + kCacheBesideShared;
  CacheLevel& last = target.caches.back();
  last.cores = target.cores;
  last.bytes = std::max(HONE_TRY(device.attribute(cuda::kL2Bytes)), target.caches[0].bytes + 1);
  const double rate = HONE_TRY(memory_rate(device));
  // The preset's rate is of a whole card; this one may have fewer SMs.
  if (rate == 0) target.memory_all_cores *= static_cast<double>(target.cores) / sms_before;
  if (rate > 0) target.memory_all_cores = std::min(rate, kMaxTargetRate);
  target.memory_all_cores = std::max(target.memory_one_core, target.memory_all_cores);
  if (Status good = check(target); !good.ok())
    return std::move(good).error().about(fmt::format("what the driver says of '{}'", target.cpu));
  return target;
}

namespace {

constexpr int64_t kCopiedBytes = int64_t{256} << 20;  // more than any cache has
constexpr int kCopies = 10;

// The bytes per second of the fastest copy.
Result<double> copy_rate(const CudaDevice& device, const CudaMemory& memory, int64_t bytes,
                         std::span<const cuda::Event> events) {
  const cuda::Functions& call = device.call();
  double most = 0;
  for (int i = 0; i < kCopies; ++i) {
    HONE_TRY(device.check(call.cuEventRecord(events[0], nullptr), "began to time"));
    HONE_TRY(device.check(
        call.cuMemcpyDtoDAsync_v2(memory.address(), memory.address() + static_cast<uint64_t>(bytes),
                                  static_cast<size_t>(bytes), nullptr),
        "copied its memory"));
    HONE_TRY(device.check(call.cuEventRecord(events[1], nullptr), "ended a timing"));
    HONE_TRY(device.check(call.cuEventSynchronize(events[1]), "waited for a copy"));
    float milliseconds = 0;
    HONE_TRY(
        device.check(call.cuEventElapsedTime(&milliseconds, events[0], events[1]), "read a time"));
    if (milliseconds > 0)
      most = std::max(most, 2e3 * static_cast<double>(bytes) / static_cast<double>(milliseconds));
  }
  return most;
}

}  // namespace

Result<Target> probed_gpu(std::shared_ptr<const CudaDevice> device) {
  Target target = HONE_TRY(gpu_target(*device));
  const int64_t bytes = std::min(kCopiedBytes, HONE_TRY(device->free_bytes()) / 4);
  const std::unique_ptr<CudaMemory> memory = HONE_TRY(CudaMemory::make(device, 2 * bytes));
  const CudaEntry entered = HONE_TRY(device->enter());
  cuda::Event events[2] = {};
  Status good;
  for (cuda::Event& event : events)
    if (good.ok()) good = device->check(device->call().cuEventCreate(&event, 0), "made an event");
  Result<double> rate =
      good.ok() ? copy_rate(*device, *memory, bytes, events) : Result<double>(good.error());
  for (cuda::Event event : events)
    if (event != nullptr) (void)device->call().cuEventDestroy_v2(event);
  target.memory_all_cores = std::clamp(
      HONE_TRY(std::move(rate)), target.memory_one_core, kMaxTargetRate);
  return target;
}

}  // namespace hone
