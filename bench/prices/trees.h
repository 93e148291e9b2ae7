#pragma once

#include <vector>

#include "learn/models/judge_prices.h"

// XGBoost's trees in place of the networks, whether a kernel is like known ones or not. They need
// no networks, so that they are tried in minutes.

namespace hone::bench {

struct TreesTrials {
  // Kernels of the test parts, by split: by the analytic price with coefficients that are fitted to
  // the same kernels, and with what trees have learned of their order, or of the times' logarithms.
  std::vector<std::vector<KernelVerdict>> fitted, order, squared;
  std::vector<double> order_seconds, squared_seconds;  // of one core, to train
};
bool asks_for_trees();
// They are made when they are first asked for.
const Result<TreesTrials>& trees_trials();

}  // namespace hone::bench
