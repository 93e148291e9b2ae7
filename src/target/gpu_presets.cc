#include "target/gpu_presets.h"

#include <algorithm>

namespace hone {

namespace {

constexpr double kGiga = 1e9, kTera = 1e12;
constexpr int64_t kGpuKiB = int64_t{1} << 10, kGpuMiB = int64_t{1} << 20,
                  kGpuGiB = int64_t{1} << 30;

constexpr GpuPreset kGpuPresets[] = {
    {"sm_80", "NVIDIA A100"}, {"sm_89", "NVIDIA RTX 4090"}, {"sm_90", "NVIDIA H100"}};

// The figures of a whole card; its SMs share them.
struct Card {
  Gpu gpu;
  int64_t sms;
  double clock;                   // Hz
  int64_t near_bytes, far_bytes;  // of the cache of an SM, and of the one of all
  double far_bytes_per_second;    // of all SMs together
  int64_t memory_bytes;
  double memory_bytes_per_second;
  double f64, f32, f16, i8;  // operations a second; bf16 as f16
};

constexpr Card kA100 = {.gpu = {.capability = 80,
                                .warps = 64,
                                .registers = 65536,
                                .shared_bytes = 164 * kGpuKiB,
                                .block_shared_bytes = 163 * kGpuKiB,
                                .launch = 1e-6},
                        .sms = 108,
                        .clock = 1.41 * kGiga,
                        .near_bytes = 192 * kGpuKiB,
                        .far_bytes = 40 * kGpuMiB,
                        .far_bytes_per_second = 5 * kTera,
                        .memory_bytes = 80 * kGpuGiB,
                        .memory_bytes_per_second = 1.8 * kTera,
                        .f64 = 9.7 * kTera,
                        .f32 = 19.5 * kTera,
                        .f16 = 312 * kTera,
                        .i8 = 624 * kTera};
constexpr Card kRtx4090 = {.gpu = {.capability = 89,
                                   .warps = 48,
                                   .registers = 65536,
                                   .shared_bytes = 100 * kGpuKiB,
                                   .block_shared_bytes = 99 * kGpuKiB,
                                   .launch = 1e-6},
                           .sms = 128,
                           .clock = 2.52 * kGiga,
                           .near_bytes = 128 * kGpuKiB,
                           .far_bytes = 72 * kGpuMiB,
                           .far_bytes_per_second = 5 * kTera,
                           .memory_bytes = 24 * kGpuGiB,
                           .memory_bytes_per_second = 0.93 * kTera,
                           .f64 = 1.29 * kTera,
                           .f32 = 82.6 * kTera,
                           .f16 = 165 * kTera,
                           .i8 = 661 * kTera};
// A copy moves 3.0 TB/s, and a chain of empty kernels takes 0.6 us each.
constexpr Card kH100 = {.gpu = {.capability = 90,
                                .warps = 64,
                                .registers = 65536,
                                .shared_bytes = 228 * kGpuKiB,
                                .block_shared_bytes = 227 * kGpuKiB,
                                .launch = 0.6e-6},
                        .sms = 132,
                        .clock = 1.98 * kGiga,
                        .near_bytes = 256 * kGpuKiB,
                        .far_bytes = 50 * kGpuMiB,
                        .far_bytes_per_second = 5.5 * kTera,
                        .memory_bytes = 80 * kGpuGiB,
                        .memory_bytes_per_second = 3.0 * kTera,
                        .f64 = 33.5 * kTera,
                        .f32 = 66.9 * kTera,
                        .f16 = 1071 * kTera,
                        .i8 = 2142 * kTera};

constexpr double kNearBytesPerCycle = 128, kFarBytesPerCycle = 64;

Target target_of(const GpuPreset& preset, const Card& card) {
  Target target;
  target.name = preset.name;
  target.cpu = preset.card;
  target.gpu = card.gpu;
  target.cores = card.sms;
  const auto sms = static_cast<double>(card.sms);
  target.caches = {{card.near_bytes, 1, kNearBytesPerCycle * card.clock},
                   {card.far_bytes, card.sms, card.far_bytes_per_second / sms}};
  target.memory_bytes = card.memory_bytes;
  target.memory_one_core =
      std::min(kFarBytesPerCycle * card.clock, card.memory_bytes_per_second / 4);
  target.memory_all_cores = card.memory_bytes_per_second;
  target.peak(DType::f64) = card.f64 / sms;
  target.peak(DType::f32) = card.f32 / sms;
  target.peak(DType::f16) = target.peak(DType::bf16) = card.f16 / sms;
  target.peak(DType::i8) = card.i8 / sms;
  target.fork_join = card.gpu.launch;
  return target;
}

Target target_at(size_t i) {
  constexpr const Card* kCards[] = {&kA100, &kRtx4090, &kH100};
  return target_of(kGpuPresets[i], *kCards[i]);
}

}  // namespace

std::span<const GpuPreset> gpu_presets() { return kGpuPresets; }

std::optional<Target> preset_gpu(std::string_view name) {
  for (size_t i = 0; i < std::size(kGpuPresets); ++i)
    if (kGpuPresets[i].name == name) return target_at(i);
  return std::nullopt;
}

namespace {

// Cards for desks have twice the cores of f32 in an SM, few of f64, and half the tensor cores.
bool is_for_desks(int64_t capability) {
  return (capability > 80 && capability < 90) || capability >= 120;
}

Target at_clock(Target target, double clock) {
  const double factor = clock * kNearBytesPerCycle / target.caches.front().bytes_per_second;
  for (CacheLevel& cache : target.caches) cache.bytes_per_second *= factor;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8})
    target.peak(dtype) *= factor;
  return target;
}

}  // namespace

Target gpu_like_preset(int64_t capability, double clock) {
  Target made = *preset_gpu(is_for_desks(capability) ? "sm_89"
                            : capability < 90        ? "sm_80"
                                                     : "sm_90");
  made.gpu->capability = capability;
  made.name = fmt::format("sm_{}", capability);
  return clock > 0 ? at_clock(std::move(made), clock) : made;
}

}  // namespace hone
