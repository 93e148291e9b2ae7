#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "place/policy.h"

// The head of the policy that says which fusions pay: a number for each. It looks at the states of
// both nodes, at what the heads of devices say of them, and at what it saves. Its weights are a
// file of their own, for one policy: they were trained on the states that this policy gives.

namespace hone {

class FusionHead {
 public:
  static constexpr size_t kOwn = 12;  // features of a fusion beside the states of its nodes
  static constexpr size_t kFeatures = 2 * PolicyShape::kWidth + kOwn;
  static constexpr size_t kHidden = 16;

  // An error says which weight is missing, unknown, of other dims or not a number.
  static Result<FusionHead> make(std::span<const NamedTensor> weights);
  // Damaged files, those of something else and those of another policy are refused by name.
  static Result<FusionHead> parse(std::span<const std::byte> file, std::string_view where,
                                  const PlacePolicy& policy);
  static Status write(const std::filesystem::path& path, std::span<const NamedTensor> weights,
                      const PlacePolicy& policy);
  static WeightShapes shapes();

  // The logarithm of how much likelier each fusion is to pay than not.
  std::vector<float> logits(std::span<const float> features) const;

 private:
  std::array<std::vector<float>, 4> weights_;  // in the order of shapes()
};

// The head that comes with hone for this policy; null: there is none.
const FusionHead* shipped_fusion_head(const PlacePolicy& policy);

// [fusions, kFeatures] of the problem of a run.
std::vector<float> fusion_features(PlaceRun& run, const PolicyView& view,
                                   const PlacePolicy::Said& said);

// Sets of fusions that may be good: those that more likely pay than not, and drawn ones.
std::vector<std::vector<uint8_t>> proposed_fusions(const PlaceProblem& problem,
                                                   const PlacePolicy& policy,
                                                   const FusionHead& head, uint64_t seed,
                                                   size_t draws = 3);

}  // namespace hone
