#include "compile/compile_time.h"

#include <algorithm>

#include "codegen/kernels.h"

namespace hone {
namespace {

// Fitted to the 313 kernels of densenet121 and nasnet_a on a Zen 3, for AVX2: seconds of a kernel,
// and of each byte of its text (kernel_key).
constexpr double kRealBase = 0.020, kRealByte = 4.9e-6;
constexpr double kQuickBase = 0.009, kQuickByte = 3.7e-6;
// How much longer quick code runs: its loops hold no values in registers from trip to trip.
constexpr double kSlower = 7;
// A gain that a person notices, and for which all kernels are compiled twice.
constexpr double kLeastGain = 0.25;     // seconds
constexpr double kLeastGainPart = 0.2;  // of what the real code takes

}  // namespace

CompileTime compile_time(std::span<const program::Kernel> kernels, const Target& target,
                         CompileCache* cache) {
  CompileTime time;
  for (const program::Kernel& kernel : kernels) {
    const std::string key = kernel_key(kernel, target);
    if (cache != nullptr && cache->find(key)) continue;
    const auto bytes = static_cast<double>(key.size());
    time.real += kRealBase + kRealByte * bytes;
    time.quick += kQuickBase + kQuickByte * bytes;
    ++time.kernels;
  }
  return time;
}

bool ends_sooner(const CompileTime& time, int64_t threads, double run) {
  const auto at_once = static_cast<double>(std::clamp<int64_t>(time.kernels, 1, threads));
  const double gain = (time.real - time.quick) / at_once - (kSlower - 1) * run;
  return gain >= kLeastGain && gain >= kLeastGainPart * (time.real / at_once + run);
}

}  // namespace hone
