#include "cost/features.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/hash.h"
#include "cost/target_features.h"
#include "target/estimate.h"

namespace hone {

std::string feature_version() {
  Hasher hasher;
#define HONE_FEATURE(member, doc) hasher.add(std::string_view(#member)).add(std::string_view(doc));
#include "cost/features.def"
  return fmt::format("{:016x}", hasher.value());
}

namespace {

float log_of(double x) { return static_cast<float>(std::log2(x)); }

}  // namespace

TargetFeatures target_features(const Target& target) {
  TargetFeatures to;
  const auto cache = [&](size_t level) {
    return target.caches[std::min(level, target.caches.size() - 1)];
  };
  const auto bytes = [](const CacheLevel& level) {
    return log_of(static_cast<double>(level.bytes));
  };
  to.vector = log_of(vector_bytes(target.isa));
  to.has_vnni = target.extensions.contains(Extension::avx512_vnni) ? 1 : 0;
  to.has_amx = target.extensions.contains(Extension::amx_bf16) ? 1 : 0;
  to.first_cache = bytes(cache(0));
  to.second_cache = bytes(cache(1));
  to.last_cache = bytes(target.caches.back());
  const double f32 = target.peak(DType::f32);
  const double clock = f32 / operations_per_cycle(target.isa, target.extensions, DType::f32);
  to.clock = log_of(clock / 1e9);
  to.double_peak = log_of(2 * target.peak(DType::f64) / f32);
  to.byte_peak = target.peak(DType::i8) > 0 ? log_of(target.peak(DType::i8) / f32) : 0;
  to.first_rate = log_of(cache(0).bytes_per_second / clock);
  to.second_rate = log_of(cache(1).bytes_per_second / clock);
  to.last_rate = log_of(target.caches.back().bytes_per_second / clock);
  to.memory_rate = log_of(target.memory_one_core / clock);
  if (!target.measured)
    for (float& rate : to.all().subspan(kTargetSizes))
      rate = std::numeric_limits<float>::quiet_NaN();
  return to;
}

std::string target_feature_version() {
  Hasher hasher;
#define HONE_TARGET_FEATURE(member, doc) \
  hasher.add(std::string_view(#member)).add(std::string_view(doc));
#include "cost/target_features.def"
  return fmt::format("{:016x}", hasher.value());
}

}  // namespace hone
