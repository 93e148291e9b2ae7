#pragma once

#include "learn/network.h"
#include "place/policy_steps.h"

// The network of the policy of placement as a graph, for training. place/policy.h computes the same
// in plain C++.

namespace hone {

// The sizes of a batch: one problem, and some placements of it. A smaller problem is padded.
struct PlacementSizes {
  int64_t nodes = 128;  // a multiple of PolicyShape::kSegment, two of them at least
  int64_t devices = 6;
  int64_t edges = 512;
  int64_t plans = 8;
};

// A placement that was made step by step, and what it teaches.
struct PlacementLesson {
  PolicySteps steps = {};
  float advantage = 0;  // over the others of the problem: to be more or less likely
  float imitated = 0;   // how much it is to be copied as it is
};

// The batch of a problem; the target is a good placement, for the head that decides all at once. An
// error if the problem is larger than the sizes.
Result<Batch> placement_batch(const PolicyView& view, const PlacementSizes& sizes,
                              std::span<const PlacementLesson> lessons,
                              std::span<const uint32_t> target);

// The part of a batch that a policy looks at.
Result<Batch> placement_view_batch(const PolicyView& view, const PlacementSizes& sizes);

// The objective that training makes small. Metrics: the parts of the loss.
Objective placement_objective(Network& net);

// Values of the heads, as PlacePolicy::Said has them, for a comparison.
struct PlacementHeads {
  Value once, order, score;  // [nodes, devices], [nodes], [plans, nodes, devices]
};
PlacementHeads placement_heads(Network& net);

// The answers before anything is placed, as PlacePolicy::Said has them.
struct PlacementSaid {
  Value once, order, state, node, device;
};
PlacementSaid placement_said(Network& net);

}  // namespace hone
