#pragma once

#include "place/plain_system.h"
#include "place/problem.h"
#include "plan/planned.h"

// Problems of chips in a row that are about memory.

namespace hone::tested {

// Nodes of a millisecond each, without tensors.
inline PlaceProblem chip_nodes(uint32_t nodes, int64_t chips, int64_t memory) {
  PlaceProblem problem;
  problem.name = "chips";
  problem.system.name = "row";
  problem.system.targets = {plain_target("chip", memory)};
  problem.system.devices = {{chips, 0, memory}};
  Links links = star_links("link", 1e9);
  links.shape = Shape::line;
  problem.system.links = {links};
  for (uint32_t i = 0; i < nodes; ++i)
    problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}});
  return problem;
}

// On one chip six units of tensors are there at once at most, and no offsets place them in six.
inline PlaceProblem holey_tensors(int64_t chips, int64_t memory) {
  PlaceProblem problem = chip_nodes(8, chips, memory);
  constexpr int64_t unit = kOffsetAlignment;
  problem.tensors = {{0, {1}, 1000, 3 * unit}, {1, {3}, 1000, 2 * unit}, {3, {5}, 1000, 2 * unit},
                     {3, {4}, 1000, 2 * unit}, {4, {5}, 1000, unit},     {5, {6}, 1000, 3 * unit},
                     {6, {7}, 1000, 3 * unit}, {1, {2}, 0, 0},           {2, {3}, 0, 0}};
  return problem;
}

}  // namespace hone::tested
