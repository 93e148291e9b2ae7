#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/cuda_memory_pool.h"
#include "tensor/type.h"

// Arrays in memory of a GPU: those of frameworks come by DLPack, and results go the same way.

namespace hone::python {

// The GPU that a list of devices names; null: it names none. The driver is that of the environment
// variable HONE_CUDA_LIBRARY, or of the system. Errors name the option.
Result<std::shared_ptr<const CudaDevice>> gpu_of(const std::optional<std::string>& devices,
                                                 std::string_view option);
std::string cuda_library();  // that the environment names, else the usual one

// True if the array says that it lies in memory of a GPU of NVIDIA's.
bool is_on_gpu(pybind11::handle array);

// A result, which Python holds: it speaks DLPack.
class GpuArray {
 public:
  // Memory of the pool for a result of a run in this stream.
  static Result<GpuArray> make(CudaMemoryPool& pool, int device, Type type, cuda::Stream stream);

  Type type() const { return type_; }
  cuda::Address address() const { return memory_->address(); }

  // As DLPack says. Its elements are there when it is made, for every stream; that of who takes it
  // is for its memory.
  pybind11::object capsule(pybind11::handle stream, pybind11::handle copy) const;
  pybind11::tuple dlpack_device() const;

 private:
  GpuArray(std::shared_ptr<const PooledMemory> memory, Type type, int device)
      : memory_(std::move(memory)), type_(type), device_(device) {}

  std::shared_ptr<const PooledMemory> memory_;
  Type type_;
  int device_;
};

// Registers the class, for this module alone.
void define_gpu_arrays(pybind11::module_& module);

}  // namespace hone::python
