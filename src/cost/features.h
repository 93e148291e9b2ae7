#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone {

// The knowledge of learned prices about a kernel under a schedule on a target: the rows of
// features.def, which say what each number is. KernelPrice finds them on its way to the analytic
// price.
struct Features {
#define HONE_FEATURE(member, doc) float member = 0;
#include "cost/features.def"

  std::span<const float> all() const;
  std::span<float> all();
};

inline constexpr size_t kFeatures = sizeof(Features) / sizeof(float);
inline constexpr std::string_view kFeatureNames[] = {
#define HONE_FEATURE(member, doc) #member,
#include "cost/features.def"
};
static_assert(std::size(kFeatureNames) == kFeatures);

// The features of the kernel alone come first, and among these the ones that networks see.
inline constexpr size_t kKernelFeatures = std::size({
#define HONE_KERNEL_FEATURE(member, doc) 1,
#define HONE_FEATURE(member, doc)
#include "cost/features.def"
});

inline constexpr size_t kSortFeatures = std::size({
#define HONE_SORT_FEATURE(member, doc) 1,
#define HONE_KERNEL_FEATURE(member, doc)
#define HONE_FEATURE(member, doc)
#include "cost/features.def"
});

inline std::span<const float> Features::all() const { return {&is_dot, kFeatures}; }
inline std::span<float> Features::all() { return {&is_dot, kFeatures}; }

// A hash of the rows: models of another version do not know these features.
std::string feature_version();

// Nearly log2(1 + x), exact at powers of two less 1: straight lines between them, since a price is
// asked for many of these. Negative numbers and NaN count as 0.
inline float log_feature(double x) {
  const float one = 1 + static_cast<float>(!(x > 0) ? 0.0 : x < 1e30 ? x : 1e30);
  const auto bits = std::bit_cast<uint32_t>(one);
  const auto exponent = static_cast<float>(static_cast<int>(bits >> 23) - 127);
  const float mantissa = std::bit_cast<float>((bits & 0x7fffff) | 0x3f800000);
  return exponent + (mantissa - 1);
}

}  // namespace hone
