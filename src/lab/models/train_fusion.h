#pragma once

#include <filesystem>
#include <functional>

#include "compile/compilation.h"
#include "learn/network.h"
#include "place/joint.h"

// Trains the head of fusions on the states of a policy that stays as it is. First it copies the
// fusions that a walk over all decisions ends with. Then it draws sets of fusions, places each one
// quickly, and makes those likelier that are better than their mean.

namespace hone {

struct FusionTraining {
  int64_t steps = 3000;   // a drawn problem each
  double imitated = 0.3;  // the share of the steps that copy
  double rate = 3e-3;
  int64_t nodes = 96;  // of the largest problems
  int64_t plans = 8;   // sets of fusions that each step draws
  uint64_t seed = 0;
  // As those of PlacementTraining.
  std::filesystem::path folder = {};
  int64_t save_every = 250;
  CompileOptions compile = {};
  std::function<void(std::string_view)> told = {};
};

// The weights, for FusionHead::write. Cancelled, it has saved where it stands.
Result<std::vector<NamedTensor>> train_fusion(const PlacePolicy& policy,
                                              const FusionTraining& options);

// Decisions together and one after another, over drawn problems: geometric means of the values
// over those of the default.
struct JointVerdict {
  std::string_view row;
  double over_default = 0;
  double over_stages = 0;  // over one after another
};
struct JointTrial {
  int64_t graphs = 10;  // of each sort: seen, held out
  int64_t nodes = 100;
  int64_t trials = 1500;
  uint64_t seed = 1;
  const CancelToken* cancel = nullptr;
};
struct JointVerdicts {
  std::string_view problems;  // "seen", "held out"
  int64_t count = 0;
  std::vector<JointVerdict> rows = {};
};
// `head` null: the one that comes with hone.
Result<std::vector<JointVerdicts>> judge_joint(const PlacePolicy& policy, const FusionHead* head,
                                               const JointTrial& options);
std::string verdicts_text(const std::vector<JointVerdicts>& verdicts);

}  // namespace hone
