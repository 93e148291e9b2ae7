#pragma once

#include <memory>
#include <span>
#include <vector>

#include "formats/safetensors.h"
#include "runtime/cuda/cuda_arrays.h"

namespace hone {

// The tensors of a training on the GPU that takes its steps. They come there before the first step,
// and back when somebody asks for them.
class StateOnGpu {
 public:
  explicit StateOnGpu(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {}

  // They are as `state`, unless steps have changed them since. Limit: the GPU has no room.
  Status put(std::span<const NamedTensor> state);
  // Writes them into `state`, if steps have changed them.
  Status read_back(std::vector<NamedTensor>& state);
  void change() { is_ahead_ = true; }               // a step has changed them
  void forget() { is_there_ = is_ahead_ = false; }  // somebody has changed `state`

  // Each `stride`-th one from `first` on. After put().
  std::vector<CudaArray> arrays(size_t first, size_t stride) const;

 private:
  std::shared_ptr<const CudaDevice> device_;
  std::unique_ptr<CudaArrays> arrays_;
  bool is_there_ = false;
  bool is_ahead_ = false;
};

}  // namespace hone
