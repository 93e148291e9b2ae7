#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "runtime/cuda/cuda_executable.h"
#include "tensor/tensor.h"
#include "tune/kernel_meter.h"
#include "tune/plan_duel.h"

// Measurements on a GPU. They happen in this process, as a copy of it has no GPU. A candidate that
// the driver refuses costs its own time and no more. One by which the GPU is lost ends all of them.
// Nothing stops a launch: a candidate that is slow at its first one has no second one, and one
// whose price says that it takes very long has none.

namespace hone {

// Races candidates of one kernel, each with the champion in turns.
class GpuRace {
 public:
  // The target is a GPU, and the options have a device.
  static Result<std::shared_ptr<GpuRace>> make(const KernelCandidate& champion,
                                               const Target& target, const MeterOptions& options);

  // As KernelMeter::race() does it: the champion comes last.
  Result<std::vector<Measured>> race(std::span<const KernelCandidate> candidates, int64_t rounds);
  int64_t compiles() const { return compiles_; }

 private:
  // A candidate on the GPU, launched some times in a run.
  struct Runner {
    std::shared_ptr<const CudaExecutable> code;
    std::vector<Tensor> outputs;
    double seconds = 0;  // of a launch, about
    int64_t launches = 1;
  };
  GpuRace(const Target& target, const MeterOptions& options) : target_(target), options_(options) {}
  Result<std::vector<Result<GpuKernel>>> compile(std::span<const KernelCandidate> candidates);
  Result<GpuKernel> compile_one(const KernelCandidate& candidate);
  Status check_price(const Schedule& schedule);
  CubinStore store();
  Result<std::shared_ptr<const CudaExecutable>> load(const KernelCandidate& candidate,
                                                     const GpuKernel& gpu, int64_t launches);
  Result<Runner> runner(const KernelCandidate& candidate, const GpuKernel& gpu);
  // After its first launch: it is so slow that this time is enough.
  bool is_out(const Runner& first) const;
  Result<double> sample(const Runner& runner) const;
  Status race_one(const KernelCandidate& candidate, const Result<GpuKernel>& gpu, int64_t rounds,
                  Measured& result, std::vector<double>& beside);

  const Target target_;
  const MeterOptions options_;
  std::mutex mutex_;  // of cubins_
  std::map<std::string, std::string, std::less<>> cubins_;
  std::unique_ptr<CudaMemory> flood_;  // it fills the cache before a sample; null: nothing is cold
  std::shared_ptr<const Cost> cost_;
  std::unique_ptr<PricedKernel> price_;  // by cost_, which it refers to
  double price_of_champion_ = 0;
  Runner champion_;
  int64_t compiles_ = 0;
};

// A duel() of two plans on the GPU. They stay where they are loaded: a GPU's kernels read whole
// sectors, wherever these lie.
Result<PlanDuel> gpu_duel(const std::shared_ptr<const CudaDevice>& device, const GpuImage& first,
                          const GpuImage& second, std::span<const Tensor> inputs,
                          const DuelOptions& options, const CubinStore& cubins = {});

}  // namespace hone
