#pragma once

#include <vector>

#include "lab/models/placement_network.h"
#include "learn/trainer.h"

// Placements that a policy draws, as lessons: those that are better than their mean are to become
// more likely.

namespace hone {

struct SampledPlacements {
  std::vector<PlacementLesson> lessons;
  std::vector<DevicePlacement> placements;
  std::vector<double> values;  // kCannotRun: it does not fit
};

// At most `count` of them: draws that end nowhere are left out. The advantage of each is how much
// its value is below the mean of all, in deviations. `reference` is a value to compare with, and
// `share` the part of what comes and goes that counts as held.
SampledPlacements sample_placements(PlaceRun& run, const PolicyView& view,
                                    const PlacePolicy& policy, const PlacePolicy::Said& said,
                                    int64_t count, double reference, double share, Rng& rng);

// A trainer's options for one drawn problem a step, as PlacementTraining or FusionTraining has it.
template <class Training>
TrainingOptions trained_by_problems(const Training& options) {
  TrainingOptions training;
  training.loader = {.batch_size = 1, .shuffles = false};
  training.epochs = 1;
  training.seed = options.seed;
  training.update.clip_norm = 1;
  training.rate = cosine_rate(options.rate, options.steps / 50 + 1, options.steps);
  training.folder = options.folder;
  training.save_every = options.save_every;
  training.compile = options.compile;
  return training;
}

}  // namespace hone
