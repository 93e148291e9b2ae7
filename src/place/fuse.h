#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/judge.h"

// Fusions of a problem that are made: another problem, with fewer nodes.

namespace hone {

struct FusedProblem {
  PlaceProblem problem;  // without fusions and names; its nodes have ids of their last ones
  std::vector<uint32_t> node_of;  // by node of the given problem
  std::vector<uint32_t> last_of;  // by node of this one: the given node that the others go into
  std::vector<uint8_t> is_made;   // by fusion

  // The placement of the given problem's nodes.
  DevicePlacement unfused(const DevicePlacement& placement) const;
};

// Makes those fusions that are wanted, in their order. One is left out if no device could have all
// nodes that would be one: they run nowhere together, have two pins or two companies. A fusion
// never closes a circle, since nobody else uses what its maker makes.
//
// The fused node needs the inputs of all its nodes before it starts, and holds what they hold.
//
// fused_problem() of any choice takes no less than fastest_problem() without messages: its nodes
// take what is left if each fusion is made. So the bounds of that one are bounds of all choices.
PlaceProblem fastest_problem(PlaceProblem problem);
FusedProblem fused_problem(const PlaceProblem& problem, std::span<const uint8_t> wanted);

}  // namespace hone
