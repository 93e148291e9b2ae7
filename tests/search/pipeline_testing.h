#pragma once

#include <algorithm>
#include <string_view>

#include "target/presets.h"
#include "tests/program/lower_testing.h"

// Small systems for the tests of pipelines.

namespace hone {

// A preset of small devices.
inline System system_of(std::string_view preset) {
  Target target = two_cores();
  for (CacheLevel& cache : target.caches) cache.cores = std::min(cache.cores, target.cores);
  return preset_system(preset, target).value();
}

inline System ring(int64_t devices) { return system_of(fmt::format("ring:{}", devices)); }

inline System fast_ring(int64_t devices) {
  System system = ring(devices);
  for (Links& links : system.links) {
    links.bytes_per_second = 1e15;
    links.latency = 0;
  }
  return system;
}

}  // namespace hone
