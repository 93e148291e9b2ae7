#include "runtime/cuda/cuda_arrays.h"

#include "base/checked_math.h"
#include "base/text.h"

namespace hone {

namespace {

// Equal tensors have equal bytes.
void clear_unused_bits(Tensor& tensor) {
  if (tensor.elements() > 0) tensor.mutable_bytes().back() &= tensor.type().bits_of_last_byte();
}

}  // namespace

Result<std::unique_ptr<CudaArrays>> CudaArrays::make(std::shared_ptr<const CudaDevice> device,
                                                     std::vector<Type> types,
                                                     std::string_view what) {
  std::unique_ptr<CudaArrays> made(new CudaArrays(std::move(device), std::move(types)));
  const CudaDevice& on = *made->device_;
  int64_t bytes = 0;
  for (const Type& type : made->types_) {
    made->addresses_.push_back(static_cast<cuda::Address>(bytes));
    const std::optional<int64_t> size =
        checked_round_up(type.static_bytes(), CudaMemory::kAlignment);
    const std::optional<int64_t> end = size ? checked_add(bytes, *size) : std::nullopt;
    if (!end) return over_limit("{} take more bytes than 64 bits count", what);
    bytes = *end;
  }
  HONE_TRY(on.has_room(bytes, fmt::format(" for {}", what)));
  made->memory_ = HONE_TRY(CudaMemory::make(made->device_, bytes));
  for (cuda::Address& address : made->addresses_) address += made->memory_->address();
  if (bytes == 0) return made;
  const CudaEntry entered = HONE_TRY(on.enter());
  const Status begun = on.check(
      on.call().cuMemsetD8Async(made->memory_->address(), 0, static_cast<size_t>(bytes), nullptr),
      fmt::format("cleared {}", what));
  HONE_TRY(made->wait(begun, "waited for cleared memory"));
  return made;
}

// Whatever was begun uses memory of the caller.
Status CudaArrays::wait(Status begun, std::string_view doing) const {
  const Status ended = device_->check(device_->call().cuStreamSynchronize(nullptr), doing);
  if (!ended.ok()) (void)device_->call().cuStreamSynchronize(nullptr);
  return begun.ok() ? ended : begun;
}

Status CudaArrays::write(std::span<const Tensor> tensors) {
  HONE_CHECK(tensors.size() == size(), "{} tensors for {} arrays", tensors.size(), size());
  const CudaEntry entered = HONE_TRY(device_->enter());
  Status good;
  for (size_t i = 0; i < size() && good.ok(); ++i) {
    HONE_CHECK(tensors[i].type() == types_[i], "{} for an array of {}",
               tensors[i].type().to_string(), types_[i].to_string());
    const std::span<const std::byte> bytes = tensors[i].bytes();
    if (bytes.empty()) continue;
    good = device_->check(
        device_->call().cuMemcpyHtoDAsync_v2(addresses_[i], bytes.data(), bytes.size(), nullptr),
        "copied an array to it");
  }
  return wait(good, "waited for copies of arrays");
}

Result<std::vector<Tensor>> CudaArrays::read() const {
  const CudaEntry entered = HONE_TRY(device_->enter());
  std::vector<Tensor> tensors;
  Status good;
  for (size_t i = 0; i < size() && good.ok(); ++i) {
    tensors.push_back(Tensor::zeros(types_[i]));
    const std::span<std::byte> bytes = tensors.back().mutable_bytes();
    if (bytes.empty()) continue;
    good = device_->check(
        device_->call().cuMemcpyDtoHAsync_v2(bytes.data(), addresses_[i], bytes.size(), nullptr),
        "copied an array from it");
  }
  HONE_TRY(wait(good, "waited for copies of arrays"));
  for (Tensor& tensor : tensors) clear_unused_bits(tensor);
  return tensors;
}

}  // namespace hone
