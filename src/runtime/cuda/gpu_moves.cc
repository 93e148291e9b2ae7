#include "runtime/cuda/gpu_moves.h"

#include <algorithm>
#include <cstring>

#include "tensor/memory_pool.h"

namespace hone {

namespace {

cuda::Address address_of(const std::byte* bytes) { return reinterpret_cast<cuda::Address>(bytes); }

// Waits for the copy, whether it has begun or not: nothing of it is under way afterwards.
Status ended(const CudaDevice& gpu, cuda::Code begun) {
  const cuda::Code waited = gpu.call().cuStreamSynchronize(nullptr);
  return gpu.check(begun != cuda::kGood ? begun : waited, "moved what devices exchange");
}

Status to_gpu(const CudaDevice& gpu, std::byte* to, const std::byte* from, size_t bytes) {
  const CudaEntry entered = HONE_TRY(gpu.enter());
  return ended(gpu, gpu.call().cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, nullptr));
}

Status from_gpu(const CudaDevice& gpu, std::byte* to, const std::byte* from, size_t bytes) {
  const CudaEntry entered = HONE_TRY(gpu.enter());
  return ended(gpu, gpu.call().cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, nullptr));
}

Status between(const CudaDevice& to_gpu_of, const CudaDevice& from_gpu_of, std::byte* to,
               const std::byte* from, size_t bytes) {
  {
    const CudaEntry entered = HONE_TRY(to_gpu_of.enter());
    const Status moved = ended(to_gpu_of, to_gpu_of.call().cuMemcpyPeerAsync(
                                              address_of(to), to_gpu_of.context(), address_of(from),
                                              from_gpu_of.context(), bytes, nullptr));
    if (moved.ok()) return moved;
  }
  AlignedBytes here(bytes, false);
  HONE_TRY(from_gpu(from_gpu_of, here.data(), from, bytes));
  return to_gpu(to_gpu_of, to, here.data(), bytes);
}

// Without it the driver itself moves bytes by way of the machine. So it may fail: the two have no
// way to each other, or have it already.
void let_reach(const CudaDevice& gpu, const CudaDevice& other) {
  const Result<CudaEntry> entered = gpu.enter();
  if (entered.ok()) (void)gpu.call().cuCtxEnablePeerAccess(other.context(), 0);
}

}  // namespace

std::function<Status(std::byte* to, const std::byte* from, size_t bytes)> moves_among(
    std::vector<std::shared_ptr<const CudaDevice>> gpus) {
  for (const auto& gpu : gpus)
    for (const auto& other : gpus)
      if (gpu != other) let_reach(*gpu, *other);
  return [gpus = std::move(gpus)](std::byte* to, const std::byte* from, size_t bytes) -> Status {
    const auto gpu_of = [&](const std::byte* at) -> const CudaDevice* {
      const auto found =
          std::ranges::find_if(gpus, [&](const auto& gpu) { return gpu->has(address_of(at)); });
      return found == gpus.end() ? nullptr : found->get();
    };
    const CudaDevice *const receiver = gpu_of(to), *const sender = gpu_of(from);
    if (receiver != nullptr && sender != nullptr)
      return between(*receiver, *sender, to, from, bytes);
    if (receiver != nullptr) return to_gpu(*receiver, to, from, bytes);
    if (sender != nullptr) return from_gpu(*sender, to, from, bytes);
    std::memcpy(to, from, bytes);
    return {};
  };
}

}  // namespace hone
