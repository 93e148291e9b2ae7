#include "runtime/cuda/device.h"

#include <algorithm>

#include "base/text.h"
#include "runtime/cuda/cubins.h"
#include "target/gpu.h"

namespace hone {

// ---- Memory ------------------------------------------------------------------------------------

Result<std::unique_ptr<CudaMemory>> CudaMemory::make(std::shared_ptr<const CudaDevice> device,
                                                     int64_t bytes) {
  std::unique_ptr<CudaMemory> memory(new CudaMemory(std::move(device), bytes));
  if (bytes == 0) return memory;
  const CudaDevice& on = *memory->device_;
  const CudaEntry entered = HONE_TRY(on.enter());
  HONE_TRY(on.check(on.call().cuMemAlloc_v2(&memory->address_, static_cast<size_t>(bytes)),
                    fmt::format("allocated {}", format_bytes(bytes))));
  const std::scoped_lock lock(on.memory_mutex_);
  on.memory_[memory->address_] = bytes;
  return memory;
}

CudaMemory::~CudaMemory() {
  if (address_ == 0) return;
  {
    const std::scoped_lock lock(device_->memory_mutex_);
    device_->memory_.erase(address_);
  }
  const CudaEntry entered = device_->enter_to_give_back();
  (void)device_->call().cuMemFree_v2(address_);
}

bool CudaDevice::has(cuda::Address address) const {
  const std::scoped_lock lock(memory_mutex_);
  const auto behind = memory_.upper_bound(address);
  if (behind == memory_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return address - begin < static_cast<uint64_t>(bytes);
}

// ---- The device --------------------------------------------------------------------------------

Result<std::shared_ptr<const CudaDevice>> CudaDevice::open(std::shared_ptr<const CudaDriver> driver,
                                                           int number) {
  if (number < 0 || number >= driver->devices())
    return unsupported("there is no GPU cuda:{}; this machine has {}", number, driver->devices())
        .with_hint(kCpuRunsIt);
  std::shared_ptr<CudaDevice> device(new CudaDevice(std::move(driver), number));
  Status good = device->set_up();
  if (!good.ok()) return std::move(good).error().within(fmt::format("cuda:{}", number));
  return std::shared_ptr<const CudaDevice>(std::move(device));
}

Status CudaDevice::set_up() {
  HONE_TRY(check(call().cuDeviceGet(&device_, number_), "looked for the GPU"));
  char name[256] = {};
  HONE_TRY(check(call().cuDeviceGetName(name, sizeof name - 1, device_), "asked for its name"));
  name_ = name;
  capability_ = 10 * HONE_TRY(attribute(cuda::kMajor)) + HONE_TRY(attribute(cuda::kMinor));
  if (capability_ < kMinCapability)
    return unsupported("the GPU '{}' is sm_{}; hone makes code for sm_{} and later ones",
                       excerpt(name_), capability_, kMinCapability)
        .with_hint(kCpuRunsIt);
  sms_ = HONE_TRY(attribute(cuda::kSmCount));
  size_t bytes = 0;
  HONE_TRY(check(call().cuDeviceTotalMem_v2(&bytes, device_), "asked for the size of its memory"));
  memory_bytes_ = static_cast<int64_t>(bytes);
  return check(call().cuDevicePrimaryCtxRetain(&context_, device_), "made a context");
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  (void)call().cuDevicePrimaryCtxRelease_v2(device_);
}

bool CudaDevice::may_begin_early() const {
  constexpr int64_t kLeastCapability = 90;
  return capability() >= kLeastCapability && driver().version() >= cuda::kEarlyVersion;
}

CudaEntry::CudaEntry(const CudaDevice& device) : call_(&device.call()) {
  (void)call_->cuCtxGetCurrent(&before_);
  if (before_ == device.context()) call_ = nullptr;
}

CudaEntry::~CudaEntry() {
  if (call_ != nullptr) (void)call_->cuCtxSetCurrent(before_);
}

Result<CudaEntry> CudaDevice::enter() const {
  CudaEntry entry(*this);
  HONE_TRY(check(call().cuCtxSetCurrent(context_), "entered its context"));
  return entry;
}

CudaEntry CudaDevice::enter_to_give_back() const {
  CudaEntry entry(*this);
  (void)call().cuCtxSetCurrent(context_);
  return entry;
}

Status CudaDevice::answers() const {
  const CudaEntry entered = HONE_TRY(enter());
  return check(call().cuStreamSynchronize(nullptr), "asked whether it is lost");
}

Result<int64_t> CudaDevice::attribute(int which) const {
  int value = 0;
  HONE_TRY(check(call().cuDeviceGetAttribute(&value, which, device_),
                 fmt::format("asked for attribute {}", which)));
  return int64_t{value};
}

Result<int64_t> CudaDevice::free_bytes() const {
  const CudaEntry entered = HONE_TRY(enter());
  size_t free = 0, all = 0;
  HONE_TRY(check(call().cuMemGetInfo_v2(&free, &all), "asked for free memory"));
  return static_cast<int64_t>(free);
}

Status CudaDevice::has_room(int64_t bytes, std::string_view what) const {
  const int64_t free = HONE_TRY(free_bytes());
  if (bytes <= free) return {};
  return over_limit(
      "the GPU '{}' has {} of memory, {} of it free, and {} are needed{}: {} are missing", name_,
      format_bytes(memory_bytes()), format_bytes(free), format_bytes(bytes), what,
      format_bytes(bytes - free));
}

Result<std::shared_ptr<const CudaMemory>> CudaDevice::resident(const Tensor& tensor) const {
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::scoped_lock lock(mutex_);
  const auto known = residents_.find(bytes.data());
  std::shared_ptr<const Resident> one;
  if (known != residents_.end()) one = known->second.lock();
  if (one == nullptr || one->memory->bytes() != tensor.byte_size()) {
    auto made = std::make_shared<Resident>();
    made->tensor = tensor;
    made->memory = HONE_TRY(CudaMemory::make(shared_from_this(), tensor.byte_size()));
    if (!bytes.empty()) {
      const CudaEntry entered = HONE_TRY(enter());
      HONE_TRY(check(
          call().cuMemcpyHtoDAsync_v2(made->memory->address(), bytes.data(), bytes.size(), nullptr),
          "copied a constant to it"));
      const Status waited =
          check(call().cuStreamSynchronize(nullptr), "waited for the copy of a constant");
      // A copy that is under way would outlive the memory.
      if (!waited.ok()) (void)call().cuStreamSynchronize(nullptr);
      HONE_TRY(waited);
    }
    one = std::move(made);
    std::erase_if(residents_, [](const auto& entry) { return entry.second.expired(); });
    residents_[bytes.data()] = one;
  }
  return std::shared_ptr<const CudaMemory>(one, one->memory.get());
}

Result<std::shared_ptr<const CudaModule>> CudaDevice::shared_module(std::string_view text,
                                                                    const MakeModule& make) const {
  const std::scoped_lock lock(modules_mutex_);
  if (const auto known = modules_.find(text); known != modules_.end())
    if (std::shared_ptr<const CudaModule> one = known->second.lock()) return one;
  std::shared_ptr<const CudaModule> made = HONE_TRY(make());
  modules_.insert_or_assign(std::string(text), made);
  return made;
}

int64_t CudaDevice::missing_bytes(std::span<const Tensor> tensors) const {
  const std::scoped_lock lock(mutex_);
  int64_t missing = 0;
  for (const Tensor& tensor : tensors) {
    const auto known = residents_.find(tensor.bytes().data());
    if (known == residents_.end() || known->second.expired()) missing += tensor.byte_size();
  }
  return missing;
}

namespace {

constexpr std::string_view kGpuName = "cuda";

}  // namespace

Result<std::optional<int>> named_gpu_number(std::string_view word, std::string_view option) {
  std::string_view rest = trim(word);
  if (!consume_prefix(rest, kGpuName) || rest.find(',') != std::string_view::npos)
    return std::optional<int>();
  if (rest.empty()) return std::optional(0);
  const bool has_colon = consume_prefix(rest, ":");
  const Result<int64_t> read = parse_int(rest);
  if (!has_colon || !read.ok() || *read < 0 || *read > INT32_MAX)
    return usage_error("{}: there is no device '{}'", option, excerpt(word))
        .with_hint("GPUs are cuda:0, cuda:1, ...; cuda is the first one");
  return std::optional(static_cast<int>(*read));
}

Result<std::shared_ptr<const CudaDevice>> open_cuda_device(const std::string& library, int number) {
  return CudaDevice::open(HONE_TRY(CudaDriver::open(library)), number);
}

}  // namespace hone
