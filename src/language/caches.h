#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/cuda/cuda_executable.h"
#include "runtime/executable.h"

namespace hone {

// The keys and values of a text, by layer, in the memory of what reads them: a CPU or a GPU.
class Caches {
 public:
  Caches() = default;  // none
  // Zeros of these types; null: a CPU reads them. Limit: the GPU has no room for them.
  static Result<Caches> make(std::vector<Type> types,
                             const std::shared_ptr<const CudaDevice>& device);

  size_t size() const { return on_gpu_ != nullptr ? on_gpu_->size() : here_.size(); }
  // The same rows with more places and zeros behind them. On a CPU: those on a GPU have the most
  // places from the beginning.
  void grow(std::span<const Type> longer);

 private:
  friend class StepCode;
  std::vector<Tensor> here_;
  std::unique_ptr<CudaArrays> on_gpu_;
};

// The code of a step, which changes caches where they lie. They are its last inputs, by layer, then
// by text.
class StepCode {
 public:
  explicit StepCode(std::shared_ptr<const Executable> here) : here_(std::move(here)) {}
  explicit StepCode(std::shared_ptr<const CudaExecutable> on_gpu) : on_gpu_(std::move(on_gpu)) {}

  // Gives the logits. After an error on a CPU texts have no caches. On a GPU rows that the step
  // writes have any contents, and others are as they were.
  Result<Tensor> run(std::vector<Tensor> inputs, std::span<Caches* const> texts, size_t layers,
                     const RunOptions& options) const;

 private:
  Result<Tensor> run_here(std::vector<Tensor> inputs, std::span<Tensor* const> caches,
                          const RunOptions& options) const;

  std::shared_ptr<const Executable> here_;
  std::shared_ptr<const CudaExecutable> on_gpu_;
};

}  // namespace hone
