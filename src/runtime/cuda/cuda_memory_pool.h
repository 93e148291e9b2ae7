#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "runtime/cuda/device.h"

namespace hone {

class CudaMemoryPool;

// Memory of a pool, for as long as this lives.
class PooledMemory {
 public:
  PooledMemory(std::unique_ptr<CudaMemory> memory, std::weak_ptr<CudaMemoryPool> pool,
               cuda::Stream stream)
      : memory_(std::move(memory)), pool_(std::move(pool)), stream_(stream) {}
  ~PooledMemory();
  PooledMemory(const PooledMemory&) = delete;

  cuda::Address address() const { return memory_->address(); }
  // Work in this stream uses it, too. Nobody knows when that ends, so another stream than its own
  // keeps it from going back to the pool.
  void use_in(cuda::Stream stream) const {
    if (stream != stream_) goes_back_ = false;
  }

 private:
  std::unique_ptr<CudaMemory> memory_;
  const std::weak_ptr<CudaMemoryPool> pool_;
  const cuda::Stream stream_;
  mutable std::atomic<bool> goes_back_ = true;
};

// Keeps memory of results that are gone for later ones of the same size. So runs allocate nothing,
// which the driver would wait for the GPU for. Memory that work in a stream has used serves that
// stream alone, whose work comes behind. Any number of threads may use a pool.
class CudaMemoryPool : public std::enable_shared_from_this<CudaMemoryPool> {
 public:
  // Keeps as many bytes at most.
  CudaMemoryPool(std::shared_ptr<const CudaDevice> device, int64_t most)
      : device_(std::move(device)), most_(most) {}

  Result<std::shared_ptr<const PooledMemory>> take(int64_t bytes, cuda::Stream stream);

 private:
  friend class PooledMemory;
  struct Kept {
    std::unique_ptr<CudaMemory> memory;
    cuda::Stream stream = nullptr;
  };
  Result<std::unique_ptr<CudaMemory>> make(int64_t bytes);
  void give(std::unique_ptr<CudaMemory> memory, cuda::Stream stream);

  const std::shared_ptr<const CudaDevice> device_;
  const int64_t most_;

  std::mutex mutex_;  // guards what follows
  std::list<Kept> kept_;
  int64_t bytes_ = 0;  // of what is kept
};

}  // namespace hone
