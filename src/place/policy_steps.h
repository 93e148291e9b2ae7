#pragma once

#include <optional>
#include <vector>

#include "place/policy.h"

// Placements by the policy. All nodes at once: each unit on the device that it likes best of those
// with room. Or step by step: the most urgent ready node, on the device of the highest score, given
// what is placed already. Room, company and pins limit the devices in both.

namespace hone {

// The decisions of all steps, for training, by the rows and ranks of the view.
struct PolicySteps {
  std::vector<float> features;         // [rows, ranks, PolicyShape::kStep]
  std::vector<uint8_t> can;            // [rows, ranks]
  std::vector<uint32_t> chosen;        // [rows]: a rank
  std::vector<float> log_probability;  // [rows]: of it, 0 where there was no choice
  std::vector<float> offset;           // [rows]: what was added to the urgency
  std::vector<float> chance;           // [rows]: the draw of the offset, in deviations
};

struct PolicyStepOptions {
  double share = 1;    // of what comes and goes that counts as held
  Rng* rng = nullptr;  // draws devices and orders; null: the most likely ones
  PolicySteps* steps = nullptr;
  // A placement and the starts of its nodes: steps go that way. Rng draws nothing.
  const DevicePlacement* follow = nullptr;
  std::span<const double> starts = {};
};
inline constexpr double kOrderDeviation = 0.05;  // of the most urgent node's urgency

// Gives none where a node has no room, or no time is left.
std::optional<DevicePlacement> place_by_steps(PlaceRun& run, const PolicyView& view,
                                              const PlacePolicy& policy,
                                              const PlacePolicy::Said& said,
                                              const PolicyStepOptions& options);
std::optional<DevicePlacement> place_at_once(const PlaceRun& run, const PolicyView& view,
                                             const PlacePolicy::Said& said, double share);

// Probabilities of `steps` by unit and device, for proposals of a local search.
std::vector<double> unit_probabilities(const PlaceRun& run, const PolicyView& view,
                                       const PlacePolicy& policy, const PlacePolicy::Said& said,
                                       const PolicySteps& steps);

}  // namespace hone
