#include "runtime/cuda/cuda_memory_pool.h"

#include <algorithm>

namespace hone {

PooledMemory::~PooledMemory() {
  if (!goes_back_) return;
  if (const std::shared_ptr<CudaMemoryPool> pool = pool_.lock())
    pool->give(std::move(memory_), stream_);
}

Result<std::shared_ptr<const PooledMemory>> CudaMemoryPool::take(int64_t bytes,
                                                                 cuda::Stream stream) {
  std::unique_ptr<CudaMemory> memory;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(kept_, [&](const Kept& one) {
      return one.stream == stream && one.memory->bytes() == bytes;
    });
    if (found != kept_.end()) {
      memory = std::move(found->memory);
      bytes_ -= bytes;
      kept_.erase(found);
    }
  }
  if (memory == nullptr) memory = HONE_TRY(make(bytes));
  return std::make_shared<const PooledMemory>(std::move(memory), weak_from_this(), stream);
}

// Where memory is short, what is kept goes back to the driver first.
Result<std::unique_ptr<CudaMemory>> CudaMemoryPool::make(int64_t bytes) {
  Result<std::unique_ptr<CudaMemory>> made = CudaMemory::make(device_, bytes);
  if (made.ok()) return made;
  std::list<Kept> kept;
  {
    const std::scoped_lock lock(mutex_);
    kept.swap(kept_);
    bytes_ = 0;
  }
  if (kept.empty()) return made;
  kept.clear();
  return CudaMemory::make(device_, bytes);
}

void CudaMemoryPool::give(std::unique_ptr<CudaMemory> memory, cuda::Stream stream) {
  const int64_t bytes = memory->bytes();
  const std::scoped_lock lock(mutex_);
  if (bytes == 0 || bytes > most_ - bytes_) return;
  kept_.push_back({std::move(memory), stream});
  bytes_ += bytes;
}

}  // namespace hone
