#pragma once

#include <filesystem>
#include <functional>

#include "lab/models/placement_network.h"
#include "learn/trainer.h"
#include "place/generate.h"

// Trains the policy of placement. First it copies the best placement that quick rivals and a short
// annealing find. Then it places each graph some times by chance, and makes those placements more
// likely that are better than their mean: a policy gradient relative to its group.

namespace hone {

struct PlacementTraining {
  int64_t steps = 30000;  // a drawn problem each
  double imitated = 0.2;  // the share of the steps that copy
  double rate = 2e-3;
  PlacementSizes sizes = {};
  // Graphs to learn from beside those that are drawn: of models, of modules. Every second problem
  // is one of them, or a part of it, on a drawn System.
  std::vector<PlaceProblem> graphs = {};
  std::vector<NamedTensor> first_weights = {};  // to go on from; none: they are drawn
  uint64_t seed = 0;
  // Checkpoints, every `save_every` steps: training that was broken off goes on, and ends with the
  // same bits. Empty: there are none.
  std::filesystem::path folder = {};
  int64_t save_every = 500;
  CompileOptions compile = {};
  std::function<void(std::string_view)> told = {};  // a line now and then
};

// The weights, for PlacePolicy::write. Cancelled, it has saved where it stands.
Result<std::vector<NamedTensor>> train_placement(const PlacementTraining& options);

// The same placement with devices that are alike in another order: those with earlier nodes come
// first. So equal devices teach no noise.
DevicePlacement in_order_of_use(const PlaceJudge& judge, const DevicePlacement& placement);

}  // namespace hone
