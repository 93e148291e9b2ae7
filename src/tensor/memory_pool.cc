#include "tensor/memory_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/pages.h"

namespace hone {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, an AVX-512 vector

}  // namespace

AlignedBytes::AlignedBytes(size_t size, bool zeroed) {
  const size_t alignment = size >= kLargePage ? kLargePage : kAlignment;
  raw_ = zeroed ? std::calloc(size + alignment, 1) : std::malloc(size + alignment);
  if (raw_ == nullptr) throw std::bad_alloc();
  auto address = reinterpret_cast<uintptr_t>(raw_);
  data_ = static_cast<std::byte*>(raw_) + (alignment - address % alignment);
  if (size >= kLargePage) want_large_pages({data_, size});
}

AlignedBytes::~AlignedBytes() { std::free(raw_); }

AlignedBytes MemoryPool::take(size_t size) {
  if (size >= kLeast) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(kept_, size, &Kept::size);
    if (found != kept_.end()) {
      AlignedBytes memory = std::move(found->memory);
      bytes_ -= size;
      kept_.erase(found);
      return memory;
    }
  }
  return {size, false};
}

void MemoryPool::give(AlignedBytes memory, size_t size) noexcept {
  if (size < kLeast) return;
  const std::scoped_lock lock(mutex_);
  if (size > most_ - bytes_) return;
  kept_.push_back({size, std::move(memory)});
  bytes_ += size;
}

}  // namespace hone
