#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "target/target.h"

namespace hone {

// A processor as learned prices see it: the rows of target_features.def. A rate that nobody has
// measured is NaN: estimates are the same for all processors.
struct TargetFeatures {
#define HONE_TARGET_FEATURE(member, doc) float member = 0;
#include "cost/target_features.def"

  std::span<const float> all() const;
  std::span<float> all();
  bool operator==(const TargetFeatures&) const = default;
};

inline constexpr size_t kTargetFeatures = sizeof(TargetFeatures) / sizeof(float);
inline constexpr std::string_view kTargetFeatureNames[] = {
#define HONE_TARGET_FEATURE(member, doc) #member,
#include "cost/target_features.def"
};
static_assert(std::size(kTargetFeatureNames) == kTargetFeatures);
// Features that every target has come first.
inline constexpr size_t kTargetSizes = std::size({
#define HONE_TARGET_SIZE(member, doc) 1,
#define HONE_TARGET_RATE(member, doc)
#include "cost/target_features.def"
});

inline std::span<const float> TargetFeatures::all() const { return {&vector, kTargetFeatures}; }
inline std::span<float> TargetFeatures::all() { return {&vector, kTargetFeatures}; }

TargetFeatures target_features(const Target& target);
// A hash of the rows.
std::string target_feature_version();

}  // namespace hone
