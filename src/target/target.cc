#include "target/target.h"

#include "base/text.h"
#include "target/estimate.h"
#include "target/levels.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr double kClock = 3e9;  // Hz; within a factor of 1.5 of any server of today

Status check_text(std::string_view what, std::string_view text) {
  if (text.size() <= kMaxTargetName) return {};
  return bad_input("the {} has {} bytes, more than {}", what, text.size(), kMaxTargetName);
}

Status check_rate(std::string_view what, double rate) {
  if (rate >= kMinTargetRate && rate <= kMaxTargetRate) return {};  // false for NaN
  return bad_input("the rate of {} is {} a second; it must be {} to {}", what, rate, kMinTargetRate,
                   kMaxTargetRate);
}

Status check_integer(std::string_view what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return {};
  return bad_input("{} is {}; it must be in 1..{}", what, value, most);
}

Status check_caches(const Target& target) {
  if (target.caches.empty() || target.caches.size() > kMaxCacheLevels)
    return bad_input("there are {} cache levels; there must be 1 to {}", target.caches.size(),
                     kMaxCacheLevels);
  int64_t previous = 0;
  for (size_t i = 0; i < target.caches.size(); ++i) {
    const CacheLevel& cache = target.caches[i];
    const std::string what = fmt::format("cache level {}", i + 1);
    HONE_TRY(
        check_integer(fmt::format("the size of {} in bytes", what), cache.bytes, kMaxTargetBytes));
    HONE_TRY(
        check_integer(fmt::format("the number of cores of {}", what), cache.cores, target.cores));
    HONE_TRY(check_rate(what, cache.bytes_per_second));
    if (cache.bytes <= previous)
      return bad_input("{} has {} bytes, no more than the level before it", what, cache.bytes);
    previous = cache.bytes;
  }
  return {};
}

Status check_peaks(const Target& target) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType type = static_cast<DType>(i);
    const bool needed = type == DType::f32 || type == DType::f64;
    if (target.peak(type) != 0 || needed)
      HONE_TRY(check_rate(fmt::format("the peak of {}", name(type)), target.peak(type)));
  }
  return {};
}

Status check_gpu(const Target& target) {
  if (!target.gpu) return {};
  const Gpu& gpu = *target.gpu;
  if (target.isa != Isa::v2 || !target.extensions.empty())
    return bad_input("a GPU has no level of a CPU's instructions, such as {}", name(target.isa));
  if (gpu.capability < kMinCapability)
    return unsupported("a GPU of sm_{}; hone makes code for sm_{} and later ones", gpu.capability,
                       kMinCapability);
  HONE_TRY(check_integer("the capability", gpu.capability, kMaxCapability));
  HONE_TRY(check_integer("the number of warps", gpu.warps, kMaxGpuWarps));
  HONE_TRY(check_integer("the number of registers", gpu.registers, kMaxGpuRegisters));
  HONE_TRY(check_integer("the shared memory of an SM", gpu.shared_bytes, kMaxGpuShared));
  HONE_TRY(check_integer("the shared memory of a block", gpu.block_shared_bytes, gpu.shared_bytes));
  if (!(gpu.launch >= 0 && gpu.launch <= kMaxGpuLaunch))
    return bad_input("a launch takes {} s; it must be in 0..{}", gpu.launch, kMaxGpuLaunch);
  return {};
}

}  // namespace

std::string default_name(const Target& target) {
  return fmt::format("{}-{}c", name(target.isa), target.cores);
}

double vector_bytes(Isa isa) {
  switch (isa) {
    case Isa::v2: return 16;
    case Isa::avx2: return 32;
    case Isa::avx512: return 64;
  }
  return 16;
}

double operations_per_cycle(Isa isa, ExtensionSet extensions, DType type) {
  using enum Extension;
  const double width = vector_bytes(isa);
  // Without FMA a multiplication and an addition take one slot each.
  const double fused = isa == Isa::v2 ? 1 : 2;
  switch (type) {
    case DType::f64: return 2 * fused * width / 8;
    case DType::f32: return 2 * fused * width / 4;
    case DType::f16: return extensions.contains(avx512_fp16) ? 2 * fused * width / 2 : 0;
    case DType::bf16:  // tdpbf16ps: 16 x 16 x 32 products in 16 cycles; vdpbf16ps: one unit
      if (extensions.contains(amx_bf16)) return 1024;
      return extensions.contains(avx512_bf16) ? fused * width / 2 : 0;
    case DType::i8:  // tdpbusd; vpdpbusd; else pmaddubsw, pmaddwd, and paddd on a third unit
      if (extensions.contains(amx_int8)) return 2048;
      if (extensions.contains(avx512_vnni)) return 4 * width;
      return isa == Isa::avx512 ? 4 * width / 3 : 2 * width;  // which vectors of 64 bytes lack
    default: return 0;
  }
}

void estimate_rates(Target& target) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType type = static_cast<DType>(i);
    target.peak(type) = kClock * operations_per_cycle(target.isa, target.extensions, type);
  }
  // AMD's processors multiply bf16 on both vector units.
  if (target.cpu.starts_with("AMD") && !target.extensions.contains(Extension::amx_bf16))
    target.peak(DType::bf16) *= 2;
  // Two loads a cycle from the nearest level, a quarter of it from each further one.
  double bandwidth = kClock * 2 * vector_bytes(target.isa);
  for (CacheLevel& cache : target.caches) {
    cache.bytes_per_second = bandwidth;
    bandwidth /= 4;
  }
  // The misses that a core can have at a time bound it; four such cores use the channels up.
  target.memory_one_core = std::min(bandwidth * 4, 10e9);
  target.memory_all_cores =
      target.memory_one_core * static_cast<double>(std::min<int64_t>(target.cores, 4));
  target.fork_join = target.cores > 1 ? 2e-6 : 0;
  target.measured = false;
}

namespace {

// The target with these instructions, which are some of its own.
Target with_only(Target target, Isa isa, ExtensionSet extensions) {
  const Target before = target;
  target.isa = isa;
  target.extensions = extensions;
  target.name = before.name == default_name(before)
                    ? default_name(target)
                    : fmt::format("{}-{}", before.name, name(isa)).substr(0, kMaxTargetName);
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType type = static_cast<DType>(i);
    const double had = operations_per_cycle(before.isa, before.extensions, type);
    const double has = operations_per_cycle(target.isa, target.extensions, type);
    const bool stays = before.peak(type) > 0 && had > 0 && has > 0;
    target.peak(type) = stays ? std::max(before.peak(type) * (has / had), kMinTargetRate) : 0;
  }
  // Narrow loads reach the nearest cache's rate in part; what is slower than that stays as it is.
  const double narrowing = vector_bytes(isa) / vector_bytes(before.isa);
  double most = kMaxTargetRate;
  if (!before.caches.empty())
    most = std::max(before.caches[0].bytes_per_second * narrowing, kMinTargetRate);
  for (CacheLevel& cache : target.caches)
    cache.bytes_per_second = std::min(cache.bytes_per_second, most);
  target.memory_one_core = std::min(target.memory_one_core, most);
  target.measured = false;
  return target;
}

}  // namespace

Target restricted(Target target, Isa isa) {
  return isa >= target.isa ? target : with_only(std::move(target), isa, {});
}

std::vector<Target> levels_of(const Target& target) {
  std::vector<Target> levels = {target};
  if (!target.extensions.empty()) levels.push_back(with_only(target, target.isa, {}));
  for (auto isa = kIsas.rbegin(); isa != kIsas.rend(); ++isa)
    if (*isa < target.isa) levels.push_back(restricted(target, *isa));
  return levels;
}

Status check(const Target& target) {
  if (target.name.empty()) return bad_input("the target has no name");
  HONE_TRY(check_text("name", target.name));
  HONE_TRY(check_text("name of the processor", target.cpu));
  if (!target.extensions.empty() && target.isa != Isa::avx512)
    return bad_input("the level {} has no extensions; they need avx512", name(target.isa));
  HONE_TRY(check_integer("the number of cores", target.cores, kMaxTargetCores));
  HONE_TRY(check_gpu(target));
  HONE_TRY(check_caches(target));
  HONE_TRY(check_integer("the memory in bytes", target.memory_bytes, kMaxTargetBytes));
  HONE_TRY(check_rate("memory from one core", target.memory_one_core));
  HONE_TRY(check_rate("memory from all cores", target.memory_all_cores));
  if (target.memory_all_cores < target.memory_one_core)
    return bad_input("all cores together read {} B/s from memory, one alone {} B/s",
                     target.memory_all_cores, target.memory_one_core);
  HONE_TRY(check_peaks(target));
  if (!(target.fork_join >= 0 && target.fork_join <= kMaxForkJoin))
    return bad_input("fork_join is {} s; it must be in 0..{}", target.fork_join, kMaxForkJoin);
  return {};
}

}  // namespace hone
