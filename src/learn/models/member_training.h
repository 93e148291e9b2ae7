#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "learn/optimizers.h"
#include "learn/schedule.h"
#include "learn/trainer.h"

namespace hone {

// How a network of an ensemble is trained on samples, of which a step takes `batch`.
// Options are those of a ModelTraining or a PlanTraining. `hash` is that of the data: the training
// that was broken off goes on only with the same.
template <class Options>
Result<TrainingOptions> member_training(const Options& options, size_t member, int64_t samples,
                                        int64_t batch, std::string_view hash) {
  TrainingOptions training;
  training.loader.batch_size = std::min(batch, samples);
  training.epochs = options.epochs;
  training.seed = hash_combine(options.seed, member);
  training.update.clip_norm = 1;
  training.update.optimizer = HONE_TRY(find_optimizer("adamw"));
  training.compile = options.compile;
  training.compile.cancel = options.cancel;
  // One thread takes sums in one order, and the price of the step's plan is always the same one.
  training.compile.plan.threads = 1;
  training.compile.cost = nullptr;
  const int64_t steps = options.epochs * (samples / training.loader.batch_size);
  training.rate = cosine_rate(options.rate, steps / 20 + 1, steps);
  if (!options.folder.empty())
    training.folder = options.folder / fmt::format("member{}-{}", member, hash);
  return training;
}

}  // namespace hone
