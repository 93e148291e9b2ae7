#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "compile/compilation.h"
#include "cost/plan_model.h"
#include "learn/models/plan_network.h"
#include "learn/plan_pairs.h"

// Makes a model of whole plans from plans that ran in turns.

namespace hone {

struct PlanTraining {
  // The number of networks. Families of programs are cut into as many parts, and each network
  // learns without one of them. Its choices among plans of the programs that it has not seen say
  // whether the model counts.
  int64_t members = 4;
  int64_t epochs = 60;
  double rate = 0.01;
  int64_t pairs = 4;  // in a batch
  uint64_t seed = 0;
  // Checkpoints of the networks: training that was broken off goes on. Training with other data or
  // other options begins anew. Empty: there are none.
  std::filesystem::path folder = {};
  CompileOptions compile = {};
  const CancelToken* cancel = nullptr;
  std::function<void(std::string_view)> told = {};  // a line for each network
};

// The choice among the plans of a program that the planner would ask about (PlanPairs::is_offered),
// by a network that has not seen it.
struct PlanChoice {
  std::string program;
  size_t plans = 0;  // of those, with a time
  double lead = 0;   // of the best one over the usual one, by the network: a logarithm
  double gain = 0;   // of that one, as it was measured
  double noise = 0;  // a deviation of that
  double most = 0;   // of the fastest of all
  int64_t ordered = 0, by_price = 0, sure = 0;  // pairs in the right order by both; of how many
};

struct TrainedPlans {
  PlanModel model;
  std::vector<PlanChoice> choices;  // of all programs, each by the networks that lack it
};

// All data is of one target, one number of threads and the same prices. Errors: it is not; fewer
// than two families of programs; nothing was measured. The same data and seed give the same bits on
// any number of threads.
Result<TrainedPlans> train_plan_model(std::span<const PlanPairs> data, const Target& target,
                                      const PlanTraining& options = {});

// The lead with which choices gained most, each family of programs as one. Losses count twice:
// whoever plans without measuring does not see them. kNoPlanLead: none gained surely, by the noise
// of the times and by how families differ, or there are fewer than kLeastPlanFamilies.
double lead_of(std::span<const PlanChoice> choices);
inline constexpr int64_t kLeastPlanFamilies = 3;

// The same network for features by the scale of a model. It was trained by one of its own, which
// has factors of 0 where the model has.
PlanMember rescaled(PlanMember member, const PlanScale& from, const PlanModel& to);

}  // namespace hone
