#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/error.h"

namespace hone {

// Memory from the operating system: aligned to a page, zero at first, and committed page by page
// when it is touched. A block of the size of a large page and more begins at one, and asks for
// large pages.
class Memory {
 public:
  // The size of pages: the least of the hardware, and of the machines that hone runs on also the
  // most.
  static constexpr int64_t kPage = 4096;
  enum class Access : uint8_t { read, execute };  // execute: and read

  Memory() = default;
  Memory(Memory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory();

  // ErrorCode::limit if there is not as much.
  static Result<Memory> map(int64_t bytes);

  std::byte* data() const { return bytes_.data(); }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  // Makes whole pages inside read-only, or executable and readable.
  Status protect(int64_t offset, int64_t bytes, Access access);

 private:
  explicit Memory(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace hone
