#pragma once

#include <cstddef>
#include <span>

namespace hone {

// The size of a large page on x86-64 and most others, if the system has large pages.
inline constexpr size_t kLargePage = size_t{2} << 20;

// Asks the system for large pages in memory that nothing was written to yet. Then there are fewer
// translations of addresses to look up, and neighbours in a cache that are neighbours in memory,
// which one page after another is by luck. The memory begins at a multiple of a large page; what is
// left over behind the last whole one keeps small pages. Without effect where the system has none.
void want_large_pages(std::span<std::byte> memory);

}  // namespace hone
