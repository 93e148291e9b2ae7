#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "learn/models/kernel_network.h"

// XGBoost, the rival of the kernel model's networks, on the same features. Benchmarks are built
// without it where the distribution's library is not installed.

namespace hone::bench {

// Error: it is not installed, and how it is.
Status check_xgboost();

enum class TreesLearn : uint8_t { order, time };

struct XgboostOptions {
  TreesLearn learn = TreesLearn::order;
  int64_t rounds = 300, depth = 6;
  double eta = 0.1;
};

// What trees say: log(time / analytic price), by schedule. Where they have learned an order, what
// all schedules of a kernel share in it means nothing.
using TreeResiduals = std::function<Result<std::vector<double>>(std::span<const Features>)>;
Result<TreeResiduals> train_xgboost(std::span<const DescribedKernel> kernels,
                                    const XgboostOptions& options);

}  // namespace hone::bench
