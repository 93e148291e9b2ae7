#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/cuda/driver.h"
#include "tensor/tensor.h"

namespace hone {

class CudaDevice;
class CudaModule;

// Memory of a GPU, for as long as this lives.
class CudaMemory {
 public:
  static constexpr int64_t kAlignment = 256;  // of what lies in it one behind the other

  // Memory of 0 bytes has no address.
  static Result<std::unique_ptr<CudaMemory>> make(std::shared_ptr<const CudaDevice> device,
                                                  int64_t bytes);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;

  cuda::Address address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  CudaMemory(std::shared_ptr<const CudaDevice> device, int64_t bytes)
      : device_(std::move(device)), bytes_(bytes) {}

  const std::shared_ptr<const CudaDevice> device_;
  const int64_t bytes_;
  cuda::Address address_ = 0;
};

// A thread in the context of a GPU. It goes back at the end: the context that a thread has says
// which GPU its own code uses.
class [[nodiscard]] CudaEntry {
 public:
  CudaEntry(CudaEntry&& from) noexcept
      : call_(std::exchange(from.call_, nullptr)), before_(from.before_) {}
  ~CudaEntry();

 private:
  friend class CudaDevice;
  explicit CudaEntry(const CudaDevice& device);

  const cuda::Functions* call_;  // null: there is nothing to go back from
  cuda::Context before_ = nullptr;
};

// One GPU: its context, and what it can. Any number of threads may use it at once; each is in the
// context, by enter(), while it calls the driver.
class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  // Unsupported if the machine has fewer GPUs, or if this one is below sm_80.
  static Result<std::shared_ptr<const CudaDevice>> open(std::shared_ptr<const CudaDriver> driver,
                                                        int number);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;

  const CudaDriver& driver() const { return *driver_; }
  const cuda::Functions& call() const { return driver_->call(); }
  Status check(cuda::Code code, std::string_view doing) const {
    return driver_->check(code, doing);
  }
  // True if the driver lets kernels begin before those ahead of them have ended.
  bool may_begin_early() const;
  Result<CudaEntry> enter() const;
  // An error: the GPU is lost, and nothing runs on it any more. Waits for the null stream.
  Status answers() const;
  // Before something is given back, which is tried in any case: a lost device refuses both, and
  // what it had is gone with it.
  CudaEntry enter_to_give_back() const;

  cuda::Context context() const { return context_; }
  int number() const { return number_; }
  const std::string& name() const { return name_; }
  int64_t capability() const { return capability_; }  // 90
  int64_t sms() const { return sms_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  Result<int64_t> free_bytes() const;
  // Limit: fewer bytes are free, with how many are missing. `what` says what they are for.
  Status has_room(int64_t bytes, std::string_view what) const;
  Result<int64_t> attribute(int which) const;  // cuda::kL2Bytes

  // True if the address is one of CudaMemory of this GPU.
  bool has(cuda::Address address) const;
  // The tensor's bytes on the GPU. All who ask for the same tensor share one copy.
  Result<std::shared_ptr<const CudaMemory>> resident(const Tensor& tensor) const;
  // Machine code that several models need. All who ask for the same text share one, for as long as
  // somebody has it; `make` makes it if nobody does.
  using MakeModule = std::function<Result<std::unique_ptr<CudaModule>>()>;
  Result<std::shared_ptr<const CudaModule>> shared_module(std::string_view text,
                                                          const MakeModule& make) const;
  // The bytes that resident() would have to allocate for those of the tensors that are not there.
  int64_t missing_bytes(std::span<const Tensor> tensors) const;

 private:
  friend class CudaMemory;
  struct Resident {
    Tensor tensor;  // its bytes stay where they are
    std::unique_ptr<CudaMemory> memory;
  };
  explicit CudaDevice(std::shared_ptr<const CudaDriver> driver, int number)
      : driver_(std::move(driver)), number_(number) {}
  Status set_up();

  const std::shared_ptr<const CudaDriver> driver_;
  const int number_;
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  std::string name_;
  int64_t capability_ = 0;
  int64_t sms_ = 0;
  int64_t memory_bytes_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<const std::byte*, std::weak_ptr<const Resident>> residents_;

  mutable std::mutex modules_mutex_;  // guards what follows; the driver compiles meanwhile
  mutable std::map<std::string, std::weak_ptr<const CudaModule>, std::less<>> modules_;

  mutable std::mutex memory_mutex_;                  // guards what follows
  mutable std::map<cuda::Address, int64_t> memory_;  // bytes of each CudaMemory
};

// The number of the GPU that a word names: "cuda" or "cuda:1"; none: it names no GPU, or several
// devices. Errors name the option.
Result<std::optional<int>> named_gpu_number(std::string_view word, std::string_view option);

// The device of this number, by the driver of this library.
Result<std::shared_ptr<const CudaDevice>> open_cuda_device(const std::string& library, int number);

}  // namespace hone
