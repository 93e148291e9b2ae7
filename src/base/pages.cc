#include "base/pages.h"

#include <sys/mman.h>

namespace hone {

void want_large_pages(std::span<std::byte> memory) {
  ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
}

}  // namespace hone
