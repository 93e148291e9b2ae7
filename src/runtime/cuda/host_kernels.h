#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "runtime/cuda/device.h"
#include "runtime/script.h"
#include "tensor/memory_pool.h"

namespace hone {

// Kernels without code for the GPU: the CPU runs them on copies of their buffers.
class CudaHostKernels {
 public:
  // A buffer of a kernel, on the GPU.
  struct Buffer {
    cuda::Address address = 0;
    int64_t bytes = 0;
    bool is_written = false;
  };

  static Result<std::unique_ptr<CudaHostKernels>> make(const Script& script, int64_t threads,
                                                       std::shared_ptr<Team> team);

  // Waits for the stream, runs the phases, and returns when their results are on the GPU.
  Status run(const CudaDevice& device, cuda::Stream stream, std::span<const Script::Phase> phases,
             std::span<const Buffer> buffers, const int64_t* symbols);

 private:
  CudaHostKernels() = default;

  std::shared_ptr<Team> team_;
  int64_t threads_ = 1;
  int64_t scratch_bytes_ = 0;  // of each thread
  AlignedBytes scratch_;
};

}  // namespace hone
