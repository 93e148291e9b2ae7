#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

// For one source of a test binary: it replaces operator new.

// Counts what is allocated while somebody counts. Sanitizers have an operator new of their own.
static std::atomic<bool> is_counting = false;
static std::atomic<int64_t> allocations = 0;
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define HONE_COUNTS_ALLOCATIONS
void* operator new(size_t size) {
  if (is_counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
