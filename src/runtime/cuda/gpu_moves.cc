#include "runtime/cuda/gpu_moves.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "tensor/memory_pool.h"

namespace hone {

namespace {

cuda::Address address_of(const std::byte* bytes) { return reinterpret_cast<cuda::Address>(bytes); }

// A GPU with streams for moves, one for each that is under way. Other code of the process has the
// null stream, which these neither wait for nor hold up.
class MovingGpu {
 public:
  explicit MovingGpu(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {}
  ~MovingGpu() {
    const CudaEntry entered = device_->enter_to_give_back();
    for (cuda::Stream stream : idle_) (void)device_->call().cuStreamDestroy_v2(stream);
  }
  MovingGpu(const MovingGpu&) = delete;

  const CudaDevice& device() const { return *device_; }

  // Waits for the copy, whether it has begun or not: nothing of it is under way afterwards.
  template <class Copy>
  Status move(const Copy& copy) {
    const CudaEntry entered = HONE_TRY(device_->enter());
    const cuda::Stream stream = HONE_TRY(take());
    const cuda::Code begun = copy(stream);
    const cuda::Code waited = device_->call().cuStreamSynchronize(stream);
    if (waited != cuda::kGood) (void)device_->call().cuStreamSynchronize(stream);
    {
      const std::scoped_lock lock(mutex_);
      idle_.push_back(stream);
    }
    return device_->check(begun != cuda::kGood ? begun : waited, "moved what devices exchange");
  }

 private:
  Result<cuda::Stream> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        const cuda::Stream stream = idle_.back();
        idle_.pop_back();
        return stream;
      }
    }
    cuda::Stream made = nullptr;
    HONE_TRY(device_->check(device_->call().cuStreamCreate(&made, cuda::kNotWithNull),
                            "made a stream for moves"));
    return made;
  }

  const std::shared_ptr<const CudaDevice> device_;
  std::mutex mutex_;
  std::vector<cuda::Stream> idle_;  // guarded by it
};

Status to_gpu(MovingGpu& gpu, std::byte* to, const std::byte* from, size_t bytes) {
  return gpu.move([&](cuda::Stream stream) {
    return gpu.device().call().cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, stream);
  });
}

Status from_gpu(MovingGpu& gpu, std::byte* to, const std::byte* from, size_t bytes) {
  return gpu.move([&](cuda::Stream stream) {
    return gpu.device().call().cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, stream);
  });
}

Status between(MovingGpu& receiver, MovingGpu& sender, std::byte* to, const std::byte* from,
               size_t bytes) {
  const Status moved = receiver.move([&](cuda::Stream stream) {
    return receiver.device().call().cuMemcpyPeerAsync(address_of(to), receiver.device().context(),
                                                      address_of(from), sender.device().context(),
                                                      bytes, stream);
  });
  if (moved.ok()) return moved;
  AlignedBytes here(bytes, false);
  HONE_TRY(from_gpu(sender, here.data(), from, bytes));
  return to_gpu(receiver, to, here.data(), bytes);
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
  std::vector<std::shared_ptr<MovingGpu>> moving;
  for (auto& gpu : gpus) moving.push_back(std::make_shared<MovingGpu>(std::move(gpu)));
  return
      [moving = std::move(moving)](std::byte* to, const std::byte* from, size_t bytes) -> Status {
        const auto gpu_of = [&](const std::byte* at) -> MovingGpu* {
          const auto found = std::ranges::find_if(
              moving, [&](const auto& gpu) { return gpu->device().has(address_of(at)); });
          return found == moving.end() ? nullptr : found->get();
        };
        MovingGpu *const receiver = gpu_of(to), *const sender = gpu_of(from);
        if (receiver != nullptr && sender != nullptr)
          return between(*receiver, *sender, to, from, bytes);
        if (receiver != nullptr) return to_gpu(*receiver, to, from, bytes);
        if (sender != nullptr) return from_gpu(*sender, to, from, bytes);
        std::memcpy(to, from, bytes);
        return {};
      };
}

}  // namespace hone
