#pragma once

#include <algorithm>

#include "base/rng.h"
#include "place/placer.h"
#include "place/plain_system.h"

// Problems and placements that are drawn.

namespace hone::tested {

struct PlaceDraw {
  uint32_t nodes = 12;
  int64_t devices = 3;
  bool private_links = false;  // each device has a link to each other one, which nobody shares
  bool two_targets = true;
  bool company = true;  // and pins
  bool memory = true;   // tight
  bool backward = false;
};

// Each node takes some of those before; numbers are small and often equal or zero.
inline PlaceProblem random_place_problem(const PlaceDraw& draw, Rng& rng) {
  PlaceProblem problem;
  problem.name = "random";
  System& system = problem.system;
  system.name = "drawn";
  const int64_t memory = draw.memory ? 1500 : int64_t{1} << 40;
  system.targets = {plain_target("fast", memory)};
  system.devices = {{draw.devices, 0, memory}};
  if (draw.two_targets && draw.devices > 1) {
    system.targets.push_back(plain_target("slow", 2 * memory));
    system.devices = {{draw.devices - 1, 0, memory}, {1, 1, 2 * memory}};
  }
  if (draw.devices > 1) {
    Links links = star_links("port", 1e6);
    if (draw.private_links) {
      links.shape = Shape::pairs;
      links.shared = false;
    } else if (rng.chance(0.3)) {
      links.shape = Shape::ring;
    }
    links.latency = rng.chance(0.5) ? 0 : 1e-4;
    system.links = {links};
  }
  for (uint32_t i = 0; i < draw.nodes; ++i) {
    PlaceNode node;
    node.id = 2 * i + 1;
    if (rng.chance(0.5)) node.name = i % 2 == 0 ? "n" : "a \"b\"";
    const double seconds = rng.chance(0.2) ? 0 : static_cast<double>(rng.between(1, 9)) * 1e-3;
    node.seconds = {seconds};
    if (system.targets.size() > 1)
      node.seconds.push_back(rng.chance(0.1) ? kCannotRun : seconds * 3);
    if (draw.memory) {
      node.held = rng.between(0, 200);
      node.scratch = rng.chance(0.3) ? rng.between(1, 100) : 0;
    }
    if (draw.company && rng.chance(0.2)) node.together = rng.between(0, 2);
    problem.nodes.push_back(node);
  }
  if (draw.company && rng.chance(0.5)) {
    PlaceNode& node = problem.nodes[rng.below(draw.nodes)];
    if (node.together == kAnywhere) node.pinned = 0;
  }
  for (uint32_t i = 0; i + 1 < draw.nodes; ++i) {
    const auto count = rng.between(0, 2);
    for (int64_t k = 0; k < count; ++k) {
      PlaceTensor tensor;
      tensor.maker = i;
      for (uint32_t user = i + 1; user < draw.nodes; ++user)
        if (rng.chance(0.25)) tensor.users.push_back(user);
      if (tensor.users.empty()) continue;
      tensor.bytes = rng.chance(0.2) ? 0 : static_cast<double>(rng.between(1, 4000));
      tensor.held = draw.memory && rng.chance(0.5) ? rng.between(1, 60) : 0;
      problem.tensors.push_back(tensor);
    }
  }
  // The second half goes back: its nodes are of companies of the first.
  if (draw.backward)
    for (uint32_t i = draw.nodes / 2; i < draw.nodes; ++i) problem.nodes[i].backward = true;
  return problem;
}

// A device for each unit that can have it.
inline DevicePlacement random_placement(const PlaceUnits& units, Rng& rng) {
  std::vector<uint32_t> devices;
  for (const PlaceUnit& unit : units.units()) devices.push_back(rng.pick(unit.devices));
  DevicePlacement placement = units.placement(devices);
  for (int32_t& priority : placement.priority) priority = static_cast<int32_t>(rng.between(-3, 3));
  return placement;
}

}  // namespace hone::tested
