#include "runtime/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "base/pages.h"

namespace hone {
namespace {

// nullptr, and errno, if there is not as much.
std::byte* map_small(size_t size) {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address != MAP_FAILED ? static_cast<std::byte*>(address) : nullptr;
}

// A mapping begins anywhere, so that more is mapped than is kept.
std::byte* map_large(size_t size) {
  std::byte* begin = map_small(size + kLargePage);
  if (begin == nullptr) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kLargePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size, kLargePage - before);
  want_large_pages({begin + before, size});
  return begin + before;
}

}  // namespace

Memory::~Memory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<Memory> Memory::map(int64_t bytes) {
  HONE_CHECK(bytes >= 0, "memory of {} bytes", bytes);
  if (bytes == 0) return Memory();
  const size_t size = (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
  std::byte* address = size >= kLargePage ? map_large(size) : map_small(size);
  if (address == nullptr) {
    const std::string reason = std::generic_category().message(errno);
    return over_limit("there are no {} bytes of memory: {}", bytes, reason);
  }
  return Memory({address, static_cast<size_t>(bytes)});
}

Status Memory::protect(int64_t offset, int64_t bytes, Access access) {
  HONE_CHECK(offset >= 0 && offset % kPage == 0 && bytes >= 0 && offset <= size() - bytes,
             "{} bytes at {} of {}", bytes, offset, size());
  if (bytes == 0) return {};
  const int rights = access == Access::execute ? PROT_READ | PROT_EXEC : PROT_READ;
  if (::mprotect(data() + offset, static_cast<size_t>(bytes), rights) != 0) {
    const std::string reason = std::generic_category().message(errno);
    return unsupported("the system does not let code be loaded: {}", reason)
        .with_hint("a security policy of the system forbids memory to become executable");
  }
  return {};
}

}  // namespace hone
