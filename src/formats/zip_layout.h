#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Where the members of a zip archive lie in the file, so that stored ones can be mapped. libzip
// reads members, but its zip_stat() has sizes and checksums alone: it tells neither where a local
// header lies nor how long it is.

namespace hone {

struct ZipMember {
  std::string name;
  bool stored;  // neither compressed nor encrypted: the data are the member's bytes
  std::span<const std::byte> data;
};

// In the order of the central directory. Empty if anything is unusual; then libzip must read the
// members, and says what is wrong.
std::vector<ZipMember> zip_layout(std::span<const std::byte> file);

}  // namespace hone
