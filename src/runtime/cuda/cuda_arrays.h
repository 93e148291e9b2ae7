#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/cuda/device.h"
#include "tensor/tensor.h"

namespace hone {

// A tensor in memory of a GPU, row by row.
struct CudaArray {
  Type type;
  cuda::Address address = 0;
};

// Tensors in one piece of memory of a GPU, which stay there from run to run. For one thread at a
// time.
class CudaArrays {
 public:
  // Zeros of these types, whose sizes are numbers. Limit: too little memory is free; `what` says
  // what they are ("the keys and values of a text").
  static Result<std::unique_ptr<CudaArrays>> make(std::shared_ptr<const CudaDevice> device,
                                                  std::vector<Type> types, std::string_view what);

  size_t size() const { return types_.size(); }
  CudaArray at(size_t i) const { return {types_[i], addresses_[i]}; }
  int64_t bytes() const { return memory_->bytes(); }

  // All of them, to the GPU and from there.
  Status write(std::span<const Tensor> tensors);
  Result<std::vector<Tensor>> read() const;

 private:
  CudaArrays(std::shared_ptr<const CudaDevice> device, std::vector<Type> types)
      : device_(std::move(device)), types_(std::move(types)) {}
  Status wait(Status begun, std::string_view doing) const;

  const std::shared_ptr<const CudaDevice> device_;
  const std::vector<Type> types_;
  std::vector<cuda::Address> addresses_;
  std::unique_ptr<CudaMemory> memory_;
};

}  // namespace hone
