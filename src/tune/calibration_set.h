#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.h"
#include "kernel/facts.h"

// The kernels that the analytic price is fitted to: small ones of each kind, at sizes of published
// models.

namespace hone {

struct CalibrationRow {
  std::string_view kind;
  std::string_view signature;  // of a graph: "%x: f32[8] -> f32[8]"
  std::string_view lines;      // its nodes; the last value is returned
};
std::span<const CalibrationRow> calibration_rows();

struct CalibrationKernel {
  std::string_view kind;
  std::shared_ptr<const KernelFacts> facts;
  Schedule planned;
  bool is_held_out = false;  // every third of a kind: the fit does not see it
};
// The kernels that the planner makes of the rows for a target; if it makes several, the one with
// the largest price by the cost.
Result<std::vector<CalibrationKernel>> calibration_kernels(const Target& target, const Cost& cost,
                                                           int64_t threads);

}  // namespace hone
