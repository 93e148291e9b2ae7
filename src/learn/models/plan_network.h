#pragma once

#include <span>
#include <vector>

#include "cost/plan_model.h"
#include "learn/data.h"
#include "learn/plan_pairs.h"

// The network of the model of whole plans as a graph, for training. cost/plan_model.h computes the
// same in plain C++.

namespace hone {

// A pair of the data, by its place there.
struct PlanSample {
  const PlanPairs* program = nullptr;
  const PlanPair* pair = nullptr;
};

// Features less their mean, for one of their deviation; 0: it is always the same.
struct PlanScale {
  PlanRow mean = {}, factor = {};
};
PlanScale scale_of(std::span<const PlanSample> samples);

// Samples are pairs. A batch is one graph: both plans of each pair one after another, each padded
// to as many nodes as the largest plan of all has. Nodes have "nodes" [2 samples size,
// kPlanFeatures] and "share" [2 samples size]; "plan" are segments, "in" and "out" edges both ways.
// Plans have "price", "time" and "noise" [samples, 2]. Prices are logarithms; times are 0 and the
// ratio.
class PlanPairsData : public Dataset {
 public:
  PlanPairsData(std::vector<PlanSample> samples, const PlanScale& scale);  // the scale outlives it

  int64_t size() const override { return std::ssize(samples_); }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override;

 private:
  std::vector<PlanSample> samples_;
  const PlanScale& scale_;
  int64_t nodes_ = 1, edges_ = 1;  // of a plan: the most
};

// The logarithm of the seconds of both plans of each pair, [samples, 2].
Value plan_log_seconds(Network& net);
// The logistic loss of their differences, and some of how far these are from those of times.
Objective plan_objective(Network& net);
PlanMember plan_member_of(std::span<const NamedTensor> weights);

}  // namespace hone
