#pragma once

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "target/presets.h"
#include "tests/target/target_testing.h"
#include "transport/collective.h"

// Random collectives on random Systems.

namespace hone::tested {

inline System preset_of(std::string_view text) {
  return preset_system(text, parse_target(kSampleTarget, "t").value()).value();
}

// Slow enough that the latencies do not decide alone, and messages take milliseconds.
inline System draw_system(Rng& rng) {
  constexpr std::string_view kPresets[] = {"local:3",   "ring:5",   "ring:8",     "mesh:3x3",
                                           "torus:2x4", "tree:2x3", "tree:2x2x2", "package:4"};
  System system = preset_of(rng.pick(kPresets));
  for (Links& links : system.links) {
    if (links.shape != Shape::bus) links.duplex = kDuplexes[rng.below(2)];
    links.shared = !rng.chance(0.1);
    links.bytes_per_second = rng.uniform(1e4, 1e6);
    links.latency = rng.chance(0.2) ? 0 : rng.uniform(0, 1e-2);
  }
  return system;
}

// A group on some devices of the System, in any order.
inline Collective draw_collective(Rng& rng, const System& system) {
  Collective drawn = {.kind = static_cast<CollectiveKind>(rng.below(kCollectiveKinds)),
                      .devices = {},
                      .elements = rng.between(0, rng.chance(0.3) ? 12 : 3000)};
  drawn.devices.resize(static_cast<size_t>(system.device_count()));
  std::iota(drawn.devices.begin(), drawn.devices.end(), 0);
  rng.shuffle(drawn.devices);
  drawn.devices.resize(1 + rng.below(drawn.devices.size()));
  const auto members = static_cast<int32_t>(drawn.devices.size());
  drawn.root = static_cast<int32_t>(rng.below(drawn.devices.size()));
  if (drawn.kind != CollectiveKind::permute) return drawn;
  std::vector<int32_t> to(drawn.devices.size());
  std::iota(to.begin(), to.end(), 0);
  rng.shuffle(to);
  for (int32_t i = 0; i < members; ++i)
    if (rng.chance(0.7)) drawn.pairs.emplace_back(i, to[static_cast<size_t>(i)]);
  return drawn;
}

inline CollectiveSchedule draw_schedule(Rng& rng, const Collective& collective) {
  const std::vector<CollectiveSchedule> schedules = schedules_of(collective);
  CollectiveSchedule schedule = schedules[rng.below(schedules.size())];
  schedule.pieces = rng.chance(0.5) ? 1 : static_cast<int32_t>(rng.between(2, 6));
  return schedule;
}

}  // namespace hone::tested
