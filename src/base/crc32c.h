#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

// The checksum CRC-32C of Castagnoli. `before` is that of what stands before the bytes. It finds
// damage, and not what someone changed on purpose.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

inline uint32_t crc32c(std::string_view bytes) {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace hone
