#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace hone {

// Memory from the C heap, aligned for vectors, and large memory for large pages.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Zeroed memory is had without touching its pages.
  AlignedBytes(size_t size, bool zeroed);
  AlignedBytes(AlignedBytes&& other) noexcept
      : raw_(std::exchange(other.raw_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~AlignedBytes();

  std::byte* data() const { return data_; }

 private:
  void* raw_ = nullptr;
  std::byte* data_ = nullptr;
};

// Keeps the memory of tensors that are gone for the next ones of the same sizes. The C heap gives
// it back to the system, which makes each page anew, at a fault each. Any number of threads may use
// a pool at once.
class MemoryPool {
 public:
  // Smaller memory is the heap's: it keeps that itself.
  static constexpr size_t kLeast = size_t{128} << 10;

  // Bytes that it keeps. Each piece has kLeast of them, so giving allocates nothing.
  explicit MemoryPool(size_t most) : most_(most) { kept_.reserve(most / kLeast); }

  AlignedBytes take(size_t size);  // what is in it is left from before
  void give(AlignedBytes memory, size_t size) noexcept;

 private:
  struct Kept {
    size_t size;
    AlignedBytes memory;
  };

  const size_t most_;
  std::mutex mutex_;  // guards what follows
  std::vector<Kept> kept_;
  size_t bytes_ = 0;  // of all that is kept
};

}  // namespace hone
