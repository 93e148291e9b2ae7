#pragma once

#include <memory>

#include "tune/build_data_set.h"
#include "tune/plan_duel.h"

namespace hone {

// Plans of programs in turns, as a task of build_data_set(): what models of whole plans learn from
// (learn/plan_pairs.h). Each plan that the planner makes of a program without some of its
// heuristics runs against the usual one; so does the one that the log knows to be best. A plan that
// has a time is not measured again by the same prices.
struct PlanCollector final : ProgramCollector {
  std::shared_ptr<const Cost> cost;  // that plans are made and priced by
  double seconds = 1;                // of a duel, about
  PlanTimer timer = duel;

  std::string_view what() const override { return "plans"; }
  Result<bool> is_done(const DataSet& set, const std::string& program,
                       const BuildOptions& options) const override;
  Result<CollectedPlans> collect(DataSet& set, const std::string& program, Graph graph,
                                 const Target& target, MeasuredKernels& known,
                                 const BuildOptions& options,
                                 const std::function<bool(double share)>& is_over) const override;
};

}  // namespace hone
