#pragma once

#include <memory>

#include "cost/cost.h"
#include "cost/gpu_model.h"
#include "target/target.h"

namespace hone {

// The price of kernels on a GPU, from what the Target says of it. A kernel takes its launch, and
// mostly the largest of four times. These are of its instructions, of the longest thread, of bytes
// from memory, and of accesses. These take whole sectors where neighbours in a warp do not read
// neighbours.
class GpuCost : public Cost {
 public:
  // The target is a GPU. Without a model that was learned on it the price is the analytic one.
  explicit GpuCost(Target target, std::shared_ptr<const GpuModel> model = nullptr);

  std::string version() const override;
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override;
  double copy(double bytes) const override;
  double command() const override;

  // The terms of the analytic price.
  GpuTimes times(std::shared_ptr<const KernelFacts> facts, const Schedule& schedule) const;

 private:
  const Target target_;
  const std::shared_ptr<const GpuModel> model_;
};

// The price of the target that needs no measurement: an AnalyticCost or a GpuCost.
std::shared_ptr<const Cost> analytic_cost(const Target& target);

}  // namespace hone
