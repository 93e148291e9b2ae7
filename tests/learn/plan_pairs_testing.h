#pragma once

#include <cmath>

#include "base/rng.h"
#include "learn/plan_pairs.h"

namespace hone {

// Plans of made-up programs. A task whose memory is not in the last cache takes exp(0.4) times as
// long as its price says.
struct DrawnPlans {
  uint64_t target = 1;
  int programs = 6, plans = 6;
  double noise = 0.002;    // of times
  bool is_random = false;  // times are noise alone, of a fifth
};

// The place of "is_in_last" among the features.
inline size_t last_cache_feature() {
  size_t at = 0;
#define HONE_PLAN_FEATURE(member, doc)                      \
  if (std::string_view(#member) == "is_in_last") return at; \
  ++at;
#include "cost/plan_features.def"
  return at;
}

inline PlanGraph drawn_plan(Rng& rng, double& slower) {
  constexpr int kTasks = 8;
  PlanGraph plan;
  plan.seconds = 1e-3;
  slower = 0;
  for (int t = 0; t < kTasks; ++t) {
    PlanRow use = {}, task = {};
    use[0] = 1;
    use[last_cache_feature()] = rng.below(2) == 0 ? 1 : 0;
    task[1] = 1.0F / kTasks;
    const auto at = static_cast<uint32_t>(plan.nodes.size());
    plan.nodes.push_back(use);
    plan.nodes.push_back(task);
    plan.share.push_back(0);
    plan.share.push_back(1.0F / kTasks);
    plan.edges.push_back({at, at + 1});
    if (t > 0) plan.edges.push_back({at - 1, at});
    slower += (use[last_cache_feature()] == 0 ? std::exp(0.4) : 1) / kTasks;
  }
  return plan;
}

inline std::vector<PlanPairs> drawn_plans(const DrawnPlans& drawn, uint64_t seed) {
  Rng rng(seed);
  std::vector<PlanPairs> all;
  for (int p = 0; p < drawn.programs; ++p) {
    PlanPairs pairs;
    pairs.program = std::string("zoo:") + static_cast<char>('a' + p) + "net";
    pairs.target = drawn.target;
    pairs.prices = 5;
    double usual = 1;
    pairs.plans.push_back(drawn_plan(rng, usual));
    pairs.is_offered.assign(static_cast<size_t>(drawn.plans), true);
    const double noise = drawn.is_random ? 0.2 : drawn.noise;
    for (int k = 1; k < drawn.plans; ++k) {
      double slower = 1;
      pairs.plans.push_back(drawn_plan(rng, slower));
      const double ratio = drawn.is_random ? 0 : std::log(slower / usual);
      pairs.pairs.push_back({.first = 0,
                             .second = static_cast<uint32_t>(k),
                             .ratio = static_cast<float>(ratio + noise * rng.normal()),
                             .noise = static_cast<float>(noise)});
    }
    all.push_back(std::move(pairs));
  }
  return all;
}

}  // namespace hone
