#include "tensor/tensor.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "base/hash.h"
#include "tensor/memory_pool.h"

namespace hone {

namespace detail {

// The bytes of one or more tensors; where they come from is decided at construction.
class TensorStorage {
 public:
  // Owned.
  TensorStorage(size_t size, bool zeroed) : size_(size), own_(size, zeroed), data_(own_.data()) {}
  // Owned, from a pool, and given back to it.
  TensorStorage(size_t size, std::shared_ptr<MemoryPool> pool)
      : size_(size), pool_(std::move(pool)), own_(pool_->take(size)), data_(own_.data()) {}
  // Somebody else's.
  TensorStorage(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : size_(bytes.size()), owner_(std::move(owner)), data_(bytes.data()) {}
  // Made when needed.
  TensorStorage(size_t size, uint64_t identity, std::function<void(std::span<std::byte>)> fill)
      : size_(size), fill_(std::move(fill)), hash_(identity), hash_known_(true) {}

  ~TensorStorage() {
    if (pool_ != nullptr) pool_->give(std::move(own_), size_);
  }

  size_t size() const { return size_; }
  bool is_owned() const { return !fill_ && own_.data() != nullptr && own_.data() == data_; }
  bool is_lazy() const { return fill_ != nullptr; }
  bool is_materialized() const { return data_.load(std::memory_order_acquire) != nullptr; }

  std::span<const std::byte> bytes() {
    if (fill_) {
      std::call_once(filled_, [this] {
        own_ = AlignedBytes(size_, false);
        fill({own_.data(), size_});
        data_.store(own_.data(), std::memory_order_release);
      });
    }
    return {data_.load(std::memory_order_acquire), size_};
  }

  void fill(std::span<std::byte> out) const { fill_(out); }

  const std::byte* aligned(size_t alignment) {
    std::span<const std::byte> all = bytes();
    if (reinterpret_cast<uintptr_t>(all.data()) % alignment == 0) return all.data();
    std::call_once(realigned_, [this, all] {
      own_ = AlignedBytes(size_, false);
      std::memcpy(own_.data(), all.data(), size_);
    });
    return own_.data();
  }

  std::span<std::byte> mutable_bytes() {
    hash_known_ = false;
    return {own_.data(), size_};
  }

  // The size of the bytes, or of what stands for them.
  uint64_t hash() {
    if (!hash_known_.load(std::memory_order_acquire)) {
      hash_ = hash_bytes(bytes());
      hash_known_.store(true, std::memory_order_release);
    }
    return hash_;
  }

 private:
  const size_t size_;
  const std::shared_ptr<MemoryPool> pool_;
  std::shared_ptr<const void> owner_;
  const std::function<void(std::span<std::byte>)> fill_;
  AlignedBytes own_;  // The bytes, or an aligned copy of the owner's.
  std::atomic<const std::byte*> data_ = nullptr;
  std::atomic<uint64_t> hash_ = 0;
  std::atomic<bool> hash_known_ = false;
  std::once_flag filled_, realigned_;
};

}  // namespace detail

using detail::TensorStorage;

Tensor::Tensor(Type type, std::shared_ptr<TensorStorage> storage)
    : type_(type), storage_(std::move(storage)) {}

Tensor Tensor::zeros(Type type) {
  return {type, std::make_shared<TensorStorage>(static_cast<size_t>(type.static_bytes()), true)};
}

Tensor Tensor::uninitialized(Type type, std::shared_ptr<MemoryPool> pool) {
  const auto size = static_cast<size_t>(type.static_bytes());
  return {type, std::make_shared<TensorStorage>(size, std::move(pool))};
}

Tensor Tensor::copy_of(Type type, std::span<const std::byte> bytes) {
  auto size = static_cast<size_t>(type.static_bytes());
  HONE_CHECK(bytes.size() == size, "{}: {} bytes given, {} needed", type.to_string(), bytes.size(),
             size);
  Tensor tensor = {type, std::make_shared<TensorStorage>(size, false)};
  if (size == 0) return tensor;
  std::span<std::byte> out = tensor.mutable_bytes();
  std::memcpy(out.data(), bytes.data(), size);
  out.back() &= type.bits_of_last_byte();  // Equal tensors have equal bytes.
  return tensor;
}

Result<Tensor> Tensor::shared(Type type, std::shared_ptr<const void> owner,
                              std::span<const std::byte> bytes) {
  auto size = static_cast<size_t>(type.static_bytes());
  if (bytes.size() != size) {
    return bad_input("{}: {} bytes are given, but {} are needed", type.to_string(), bytes.size(),
                     size);
  }
  if (size == 0) return zeros(type);
  return Tensor(type, std::make_shared<TensorStorage>(std::move(owner), bytes));
}

Result<Tensor> Tensor::mapped(Type type, std::shared_ptr<const MappedFile> file, int64_t offset) {
  auto file_size = static_cast<int64_t>(file->bytes().size());
  int64_t size = type.static_bytes();
  if (offset < 0 || offset > file_size || size > file_size - offset) {
    return bad_input("{}: needs {} bytes at offset {} of a file of {} bytes", type.to_string(),
                     size, offset, file_size);
  }
  std::span<const std::byte> bytes =
      file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  return shared(type, std::move(file), bytes);
}

Tensor Tensor::lazy(Type type, uint64_t identity, std::function<void(std::span<std::byte>)> fill) {
  HONE_CHECK(fill != nullptr);
  auto size = static_cast<size_t>(type.static_bytes());
  return {type, std::make_shared<TensorStorage>(size, identity, std::move(fill))};
}

std::span<const std::byte> Tensor::bytes() const {
  HONE_CHECK(storage_ != nullptr, "an absent tensor");
  return storage_->bytes();
}

std::span<const std::byte> Tensor::bytes_once(std::vector<std::byte>& scratch) const {
  if (is_materialized()) return bytes();
  scratch.resize(storage_->size());
  storage_->fill(scratch);
  return scratch;
}

bool Tensor::is_writable() const {
  return storage_ != nullptr && storage_->is_owned() && storage_.use_count() == 1;
}

std::span<std::byte> Tensor::mutable_bytes() {
  HONE_CHECK(storage_ != nullptr && storage_->is_owned(), "the tensor does not own its bytes");
  HONE_CHECK(storage_.use_count() == 1, "the bytes have {} owners", storage_.use_count());
  return storage_->mutable_bytes();
}

bool Tensor::is_materialized() const {
  HONE_CHECK(storage_ != nullptr, "an absent tensor");
  return storage_->is_materialized();
}

const void* Tensor::aligned_data(size_t alignment) const {
  HONE_CHECK(storage_ != nullptr, "an absent tensor");
  return storage_->aligned(alignment);
}

Tensor Tensor::viewed_as(Type type) const {
  HONE_CHECK(type.static_bytes() == byte_size(), "{} viewed as {}", type_.to_string(),
             type.to_string());
  return {type, storage_};
}

uint64_t Tensor::content_hash() const {
  HONE_CHECK(storage_ != nullptr, "an absent tensor");
  return hash_combine(type_.hash(), storage_->hash());
}

bool Tensor::same_bytes(const Tensor& other) const {
  HONE_CHECK(storage_ != nullptr && other.storage_ != nullptr, "an absent tensor");
  if (storage_ == other.storage_) return true;
  if (storage_->size() != other.storage_->size()) return false;
  if (storage_->is_lazy() && other.storage_->is_lazy() &&
      storage_->hash() == other.storage_->hash()) {
    return true;
  }
  std::span<const std::byte> a = bytes(), b = other.bytes();
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hone
